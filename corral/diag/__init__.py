"""``corral diag``: which agent is asked for which GPUs, and what its answer looks like."""
