"""RLightning's planner to the letter (reference.md)."""
