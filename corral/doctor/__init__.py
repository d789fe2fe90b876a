"""``corral doctor``: what a node has, and lacks, for full sight of its GPUs and for repairs.

look      runs the agent's own sources for some seconds, and looks at files     -> Facts
findings  what these facts mean, and what to do (pure)                          -> Finding
table     for people
"""
