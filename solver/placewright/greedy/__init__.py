"""Greedy planners: `reference` is RLightning's planner to the letter, the others honour every rule of this library."""
