"""From a problem to CP-SAT: classes of equal nodes, node patterns, variables. Rules and goals add themselves."""
