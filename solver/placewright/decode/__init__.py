"""From counts per node to workers on GPUs, pools and idle GPUs."""
