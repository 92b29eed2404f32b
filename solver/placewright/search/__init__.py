"""How a model is solved: goal by goal, within the time limit."""
