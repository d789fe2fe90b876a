"""The short form in which the SXid tables are written, and its expansion to rows of the catalogue.

Sources: the names and texts of the open driver for the A100 and H100 generations of NVSwitch, the Fabric Manager
guide's lists of fatal and non-fatal numbers, and NVSentinel's public table for the vendor's bucket.
"""

from collections.abc import Iterable
from enum import Enum

from vocab.catalogue.persistence import outlives
from vocab.catalogue.row import CodeRow
from vocab.events import Recovery, Scope, Severity
from vocab.states import ClearsOn


class Kind(Enum):
    """What sort of message a number is: severity, recovery, what clears it (None: no standing condition), why."""

    MARK = ("info", "none", None, "first or last number of a unit, no error of its own")
    NOTED = ("warning", "none", None, "the driver reports it as non-fatal; a trend only")
    SILENT = ("warning", "none", None, "no open driver prints it: first-generation switch, closed firmware or unused")
    SIGNAL = ("warning", "investigate", "signal", "signal quality or mode of a link; look at it")
    CABLE = ("warning", "contact_support", "person", "a cable, its module or its connector")
    SETUP = ("warning", "contact_support", "person", "the fabric is set up wrongly; work on that GPU will stall")
    STALLED = ("warning", "reset_gpu", "reset", "called non-fatal, yet the GPU's traffic stalls until a reset")
    CONTAINED = ("error", "investigate", "reset", "fatal where the port was locked: the word in the line decides")
    LINK = ("critical", "reset_gpu", "reset", "the link, or its partition, is dead until GPUs and link are reset")
    FABRIC = ("critical", "reboot_node", "reboot", "the whole fabric of the node is dead until all is reset together")
    HOT = ("error", "investigate", "signal", "heat; ends with the message of its end")
    ENDED = ("info", "none", None, "the end of a thermal state")
    SHUTDOWN = ("critical", "investigate", "reboot", "the switch turns itself off because of heat")


Message = tuple[int, str, Kind, str | None]  # number, title, kind, vendor's bucket
Unit = tuple[str, tuple[Message, ...]]  # the part of the switch, and its messages

SOURCE = "open NVSwitch driver 595.45.04, Fabric Manager guide"


def expand(units: Iterable[Unit]) -> dict[int, CodeRow]:
    """The rows by number. Their scope is the fabric: an SXid never names a GPU."""
    rows = {}
    for unit, messages in units:
        for number, title, kind, vendor in messages:
            severity, recovery, cleared, why = kind.value
            clears_on = None if cleared is None else ClearsOn(cleared)
            rows[number] = CodeRow(
                code=f"sxid:{number}",
                title=f"{unit}: {title}",
                severity=Severity(severity),
                recovery=Recovery(recovery),
                scope=Scope.FABRIC,
                condition=clears_on is not None,
                clears_on=clears_on or ClearsOn.SIGNAL,
                outlives=outlives(f"sxid:{number}", clears_on),
                discriminator=("link",),
                vendor=vendor,
                differs=why,
                source=SOURCE,
            )
    return rows
