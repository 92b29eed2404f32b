"""First-fit: largest unit first, in topological order, every hard rule kept."""
