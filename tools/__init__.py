"""Command lines: parse and call, nothing else."""
