"""What the agent may do stays with the agent.

systemd gives CAP_SYSLOG (for /dev/kmsg) as an *ambient* capability, which every child would inherit. The
agent keeps it for itself and clears the ambient set before it starts anything, so replicas get none.
"""

import ctypes

PR_CAP_AMBIENT = 47  # linux/prctl.h
PR_CAP_AMBIENT_CLEAR_ALL = 4


def keep_to_ourselves() -> None:
    """Clear the ambient set. A kernel that knows none (before 4.3) has nothing to pass on."""
    ctypes.CDLL(None).prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
