"""docs/signals.md, written from the catalogue. Pure: tables in, Markdown out.

``python -m vocab.catalogue.page > docs/signals.md`` writes it anew.
"""

import sys
from collections.abc import Iterable

from vocab.catalogue.codes import NAMED, SXIDS, XIDS
from vocab.catalogue.nvlink5_rules import RULES
from vocab.catalogue.recovery import ACTIONS
from vocab.catalogue.row import CodeRow
from vocab.catalogue.sxid_form import SOURCE

HEAD = """# Signals

<!-- Generated from vocab/catalogue by `python -m vocab.catalogue.page`; a test fails when this page is stale. -->

What Corral knows of each code: how bad it is, what it advises, what it takes down, and what ends the condition that it
opens (*none*: it opens none). *Outlives* is the most that the fault itself survives: *nothing* (a moment), its
*signal*, the *work* on the GPU (a reset ends it), a *reset*, a *reboot* (a power cycle ends it), or *all* (it takes a
person). **certain** codes are strong enough alone for the agent's bounded fence. The advice is that of the plain case;
where a line says more (the sub-code of an NVLink 5 error, the registers of an Xid 74, the cause of a 45, the action of
a 154, the word Fatal of an SXid) the judge goes by the line. A code that is not here is a warning that asks a person
to look, and holds nothing.

The vendor's bucket is the immediate action of NVIDIA's public Xid catalogue (for SXids the one of NVSentinel's public
table); below each table stands why our advice is another, and what stays behind of a fault.
"""

_SXID_TEXT = "A line's word Fatal or Non-fatal is worth more than its row. The scope of all is the fabric."
_NVLINK5_TEXT = """The number of the unit is in bits 9 to 5 of the first hex word before driver R575, in bits 6 to 0
from R575 on; the sub-code in bits 25 to 20; the second hex word is the error status. *Promotable*: one more bit makes
it a reset. An error that its line calls Nonfatal and whose row says IGNORE is information."""
_NAMED_TEXT = """Not from the kernel's Xid lines. `aer` comes from the kernel's AER lines alone: counters of AER among
readings have no name of ours, are kept, and are not judged."""


def page() -> str:
    """The whole page."""
    parts = (
        HEAD,
        _section("Xids", f"{len(XIDS)} numbers. Sources: {_sources(XIDS.values())}.", _codes(XIDS.values())),
        _differences(XIDS.values()),
        _remains(XIDS.values()),
        _section("What an Xid 154 asks for", "The driver's recovery action, by number.", _actions()),
        _section("NVLink 5: Xids 144 to 150", _NVLINK5_TEXT, _rules()),
        _section("Named codes", _NAMED_TEXT, _codes(NAMED.values())),
        _differences(NAMED.values()),
        _remains(NAMED.values()),
        _section("SXids", f"{len(SXIDS)} numbers. {_SXID_TEXT} Source: {SOURCE}.", _sxids()),
    )
    return "".join(parts)


def _section(title: str, text: str, table: str) -> str:
    return f"\n## {title}\n\n{text}\n\n{table}"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def _codes(rows: Iterable[CodeRow]) -> str:
    head = ("code", "what", "severity", "advice", "scope", "ends with", "outlives", "certain", "vendor", "source")
    return _table(
        head,
        (
            (
                f"`{row.code}`",
                row.title,
                row.severity.value,
                row.recovery.value,
                row.scope.value,
                _ends(row),
                row.outlives.value,
                "certain" if row.certain else "",
                row.vendor or "",
                _short(row.source),
            )
            for row in rows
        ),
    )


def _ends(row: CodeRow) -> str:
    return row.clears_on.value if row.condition else "none"


def _short(source: str) -> str:
    """The Xid sources are long and few: they are named above the table."""
    return _TAGS.get(source, source)


_TAGS = {source: tag for tag, source in zip("ABC", dict.fromkeys(row.source for row in XIDS.values()), strict=False)}


def _sources(rows: Iterable[CodeRow]) -> str:
    return "; ".join(f"{_TAGS[source]} {source}" for source in dict.fromkeys(row.source for row in rows))


def _differences(rows: Iterable[CodeRow]) -> str:
    lines = [f"- `{row.code}`: {row.differs}." for row in rows if row.differs]
    return "\nWhere we differ, and why:\n\n" + "\n".join(lines) + "\n"


def _remains(rows: Iterable[CodeRow]) -> str:
    lines = [f"- `{row.code}`: {row.remains}." for row in rows if row.remains]
    return "\nWhat stays behind:\n\n" + "\n".join(lines) + "\n"


def _actions() -> str:
    rows = (
        (str(number), said.name, said.severity.value, said.recovery.value) for number, said in sorted(ACTIONS.items())
    )
    return _table(("value", "the driver says", "severity", "advice"), rows)


def _rules() -> str:
    rows = (
        (
            str(xid),
            " or ".join(rule.names),
            str(rule.old_unit),
            str(rule.new_unit),
            str(rule.subcode),
            ", ".join(f"{status:#x}" for status in rule.statuses) or "any",
            rule.immediate + (" (promotable)" if rule.promotable else ""),
            rule.then,
        )
        for xid, rules in RULES.items()
        for rule in rules
    )
    return _table(("Xid", "unit", "before R575", "from R575", "sub-code", "error status", "at once", "then"), rows)


def _sxids() -> str:
    rows = (
        (
            f"`{row.code}`",
            row.title,
            row.severity.value,
            row.recovery.value,
            _ends(row),
            row.outlives.value,
            row.vendor or "",
            row.differs or "",
        )
        for row in SXIDS.values()
    )
    return _table(("code", "what", "severity", "advice", "ends with", "outlives", "vendor", "why"), rows)


if __name__ == "__main__":
    sys.stdout.write(page())
