"""What rules and goals may see of a model."""
