"""Slurm: nodes are drained and resumed by ``scontrol``, and seen by ``sinfo``."""
