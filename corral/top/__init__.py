"""``corral top``: the fleet, or one node by its own agent, as frames that follow each other."""
