"""Independent oracles: design.md read a second time, sharing no code with the verifier or the solver's model."""
