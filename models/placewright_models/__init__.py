"""What a placement problem is and what its answer is; nothing here runs a solver."""
