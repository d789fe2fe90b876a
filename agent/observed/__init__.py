"""Observed replicas: engines that run on this node's GPUs and that Corral did not start.

    GPU processes -> cgroup (owner) -> ancestors -> listening port -> /v1/models, /metrics, /health -> a replica

Reading order: ``owner`` (pure), ``processes`` (what /proc tells), ``finder`` (who serves), ``talk`` (what it says),
``sighting`` (one of them over time), ``source`` (the loop). Nothing here signals, stops or asks anything to change:
all that leaves this room are GETs.
"""
