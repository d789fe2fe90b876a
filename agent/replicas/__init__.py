"""The replica supervisor: starts, adopts, fences, drains and stops the engine processes of this node.

Reading order: ``steps`` (what can be done), ``plan`` (what should be done: pure), ``supervisor`` (the loop
that does it). A replica is a detached process, or a unit of systemd that the root helper starts (``units``); either is
known by pid, start time and boot id, and outlives the agent.
"""
