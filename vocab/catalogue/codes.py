"""What a code means: one look-up over the tables of Xids, SXids and named codes."""

from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache

from vocab.catalogue.named import NAMED
from vocab.catalogue.row import CodeRow
from vocab.catalogue.sxids import SXIDS
from vocab.catalogue.xids import XIDS
from vocab.events import Recovery, Scope, Severity
from vocab.states import ClearsOn

__all__ = ["NAMED", "SXIDS", "XIDS", "row"]

ROWS: dict[str, CodeRow] = {
    **{known.code: known for known in XIDS.values()},
    **{known.code: known for known in SXIDS.values()},
    **NAMED,
}


def row(code: str) -> CodeRow:
    """The row of ``xid:N``, ``sxid:N`` or a named code; for an unknown one a generic row that holds nothing."""
    return ROWS.get(code) or _unknown(code)


def nearest(code: str, others: Sequence[str] = ()) -> str:
    """The known codes, and other names, that look most like one that is not, in words for the end of an error."""
    found = get_close_matches(code, [*ROWS, *others], n=3, cutoff=0.7)
    found.sort(key=lambda each: not code.startswith(each))  # a digit too many
    return f"; did you mean {' or '.join(found)}?" if found else ""


@lru_cache(maxsize=256)  # numbers come from log lines: anyone can write any number there
def _unknown(code: str) -> CodeRow:
    """A warning that asks a person to look: never a condition, never a hold, whatever the number."""
    kind = code.partition(":")[0]
    return CodeRow(
        code=code,
        title="not in the catalogue",
        severity=Severity.WARNING,
        recovery=Recovery.INVESTIGATE,
        scope=Scope.FABRIC if kind == "sxid" else Scope.GPU if kind == "xid" else Scope.NODE,
        condition=False,
        clears_on=ClearsOn.SIGNAL,
        source="generic row",
    )
