"""From files and plain data to a complete problem, with every fault named."""
