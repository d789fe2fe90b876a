"""``corral survey``: what the logs and metrics of a fleet say of it, before anything of Corral runs there.

Nothing is changed anywhere. Kernel logs go through the agent's own judge (``study``), what it finds through the
controller's own core, once as it was and once as Corral would have had it (``judgement``).
"""
