"""One file a family; each registers itself when ``benchmarks.registry.families`` imports it."""
