"""Every public SXid: what an NVSwitch reports. Numbers that are not here get the generic row of ``codes``.

The word *Fatal* or *Non-fatal* of the line is worth more than these rows; they speak where the line lacks it.
Numbers moved once: up to R545, 28000 to 28006 were the multicast and 29000 to 29006 the reduction errors that are 29000
and 30000 from R550 on. The text of a line tells which is meant: see ``renumbered``.
Some numbers have several texts, of which one is worse: see ``worst``.
"""

from vocab.catalogue import (
    sxid_chip,
    sxid_egress,
    sxid_host,
    sxid_ingress,
    sxid_interface,
    sxid_physical,
    sxid_port,
    sxid_transaction,
)
from vocab.catalogue.row import CodeRow
from vocab.catalogue.sxid_form import expand
from vocab.events import Severity

SXIDS: dict[int, CodeRow] = {}
for _table in (
    sxid_host,
    sxid_ingress,
    sxid_egress,
    sxid_port,
    sxid_interface,
    sxid_transaction,
    sxid_physical,
    sxid_chip,
):
    SXIDS |= expand(_table.UNITS)
SXIDS = dict(sorted(SXIDS.items()))

_MOVED = {28: "MC ", 29: "Red "}  # thousands of the old number, and how the texts of that unit begin
_LAST_MOVED = 6
_MOVED_FROM = range(525, 546)  # driver branches with the old numbers
_LAST_WORDS = "Shutting Down"  # 10004 and 10006: not warm any more, but off in a moment


def renumbered(number: int, text: str | None, branch: int | None = None) -> int:
    """Today's number of an SXid that an old driver printed; the same number if it did not move.

    Judged by the text; where a line has none, by the branch of the driver, if that is known.
    """
    thousands, rest = divmod(number, 1000)
    start = _MOVED.get(thousands)
    if start is None or rest > _LAST_MOVED:
        return number
    moved = branch in _MOVED_FROM if text is None else text.startswith(start)
    return number + 1000 if moved else number


def worst(text: str | None) -> Severity | None:
    """Critical where the text says that the switch turns itself off, else None: the row speaks."""
    return Severity.CRITICAL if text is not None and text.endswith(_LAST_WORDS) else None
