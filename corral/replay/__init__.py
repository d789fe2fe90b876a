"""``corral replay``: recordings through the same judge and the same core as the daemons, in virtual time.

``recording`` reads and merges files, ``watched`` turns what a node's recording shows into what its agent would
have said, ``play`` lets time pass over judges and core, ``told`` writes the lines, ``run`` puts them together.
"""

from corral.replay.run import replay

__all__ = ["replay"]
