"""The driver's own advice for a GPU, as Xid 154, NVML field 230 and DCGM field 1523 number it."""

from collections.abc import Mapping
from typing import NamedTuple

from vocab.events import Recovery, Severity


class Advice(NamedTuple):
    """What one value of the recovery action means to us."""

    name: str
    severity: Severity
    recovery: Recovery


# NVML's numbers; the driver ranks reboot over reset over drain-and-reset over drain P2P over IMEX (open driver, gpu.c)
ACTIONS: dict[int, Advice] = {
    0: Advice("none", Severity.INFO, Recovery.NONE),
    1: Advice("GPU reset", Severity.CRITICAL, Recovery.RESET_GPU),
    2: Advice("node reboot", Severity.CRITICAL, Recovery.REBOOT_NODE),
    3: Advice("drain P2P", Severity.ERROR, Recovery.INVESTIGATE),
    4: Advice("drain and reset", Severity.ERROR, Recovery.DRAIN_AND_RESET),
    5: Advice("recover IMEX domain", Severity.ERROR, Recovery.INVESTIGATE),
    6: Advice("bus reset", Severity.CRITICAL, Recovery.RESET_GPU),
    7: Advice("system reboot", Severity.CRITICAL, Recovery.REBOOT_NODE),
}
_UNKNOWN = Advice("unknown", Severity.WARNING, Recovery.INVESTIGATE)


def advice(action: int | None, actions: Mapping[int, Advice] = ACTIONS) -> Advice:
    """What the value ``to`` of an Xid 154 (or the field's value) asks for; unknown values ask a person."""
    return _UNKNOWN if action is None else actions.get(action, _UNKNOWN)
