"""The ladder of repairs: which rung a recovery begins at, and which comes next. Tables only."""

from vocab.events import Recovery, Severity
from vocab.states import ActionKind

LADDER: dict[Recovery, ActionKind | None] = {
    Recovery.NONE: None,
    Recovery.INVESTIGATE: None,
    Recovery.RESTART_APP: None,  # of a replica: restart.py; a GPU is not repaired for it
    Recovery.DRAIN_AND_RESET: ActionKind.RESET_GPU,
    Recovery.RESET_GPU: ActionKind.RESET_GPU,
    Recovery.REBOOT_NODE: ActionKind.REBOOT_NODE,
    Recovery.POWER_CYCLE: ActionKind.POWER_CYCLE,
    Recovery.CONTACT_SUPPORT: ActionKind.QUARANTINE,
}
NEXT_RUNG: dict[ActionKind, ActionKind] = {
    ActionKind.RESET_GPU: ActionKind.REBOOT_NODE,
    ActionKind.REBOOT_NODE: ActionKind.POWER_CYCLE,
    ActionKind.POWER_CYCLE: ActionKind.QUARANTINE,
}
HARSHER_AGAIN = frozenset({"xid:48", "ecc_uncorrectable"})  # one that comes back after a reset is not for a reset alone


def needs_repair(severity: Severity, recovery: Recovery) -> bool:
    """Whether a fault takes its GPU out of service: at least an error, and at least a reset is advised."""
    return severity.rank >= Severity.ERROR.rank and recovery.rank >= Recovery.DRAIN_AND_RESET.rank
