"""The index step: names of components, classes of nodes and domains, as dense integers."""
