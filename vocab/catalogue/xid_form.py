"""The short form in which the Xid tables are written, and its expansion to rows of the catalogue."""

from collections.abc import Iterable, Mapping

from vocab.catalogue.persistence import outlives, remains
from vocab.catalogue.row import CodeRow
from vocab.events import Recovery, Scope, Severity
from vocab.states import ClearsOn

S, R, P, C = Severity, Recovery, Scope, ClearsOn

# number, title, severity, recovery, scope, what clears the standing condition (None: there is none), vendor's bucket
Row = tuple[int, str, Severity, Recovery, Scope, ClearsOn | None, str | None]


def expand(
    rows: Iterable[Row],
    source: str,
    *,
    certain: frozenset[int],
    discriminators: Mapping[int, tuple[str, ...]],
    differs: Mapping[int, str],
) -> dict[int, CodeRow]:
    """The rows by number. Without a ``differs`` of its own, a row follows the vendor's immediate bucket."""
    return {
        number: CodeRow(
            code=f"xid:{number}",
            title=title,
            severity=severity,
            recovery=recovery,
            scope=scope,
            certain=number in certain,
            condition=clears_on is not None,
            clears_on=clears_on or ClearsOn.SIGNAL,
            outlives=outlives(f"xid:{number}", clears_on),
            remains=remains(f"xid:{number}"),
            discriminator=discriminators.get(number, ()),
            vendor=vendor,
            differs=differs.get(number),
            source=source,
        )
        for number, title, severity, recovery, scope, clears_on, vendor in rows
    }
