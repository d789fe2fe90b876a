"""``corral up``: the processes of a whole fleet on this machine, started, watched and stopped together."""
