"""The matrix of versions: per pool and part which version runs on how many nodes, and what is known to be bad."""

import msgspec

from controller.core.fleet.fleet import Fleet
from controller.core.fleet.versions import DRIVER, JUDGED, usual_of
from vocab.catalogue.versions import known_bad

MOST_NODES = 50  # named of one version; the count tells of all


class VersionView(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a part within a pool. ``usual``: most of the pool have it. ``nodes``: the first 50 by name."""

    version: str
    count: int
    usual: bool
    nodes: tuple[str, ...]


class PartView(msgspec.Struct, frozen=True, kw_only=True):
    """A part (``driver``, ``cuda``; of a board ``vbios``, ``inforom``, ``gsp``) in a pool; None: nodes of no pool.

    ``judged``: nodes that have another version than the usual one get the condition ``version_drift``.
    """

    pool: str | None
    part: str
    board: str
    judged: bool
    versions: tuple[VersionView, ...]


class BadView(msgspec.Struct, frozen=True, kw_only=True):
    """A combination that is known to go wrong, on these nodes (the first 50 by name), and who published it."""

    what: str
    remedy: str
    source: str
    count: int
    nodes: tuple[str, ...]


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """All versions of the fleet."""

    parts: tuple[PartView, ...]
    known_bad: tuple[BadView, ...]


def matrix(fleet: Fleet) -> Matrix:
    """What every node last said of its versions."""
    parts = []
    for pool, part, versions in fleet.versions.rows():
        usual = usual_of(versions)
        views = [
            VersionView(version=version, count=len(nodes), usual=version == usual, nodes=_first(nodes))
            for version, nodes in sorted(versions.items(), key=lambda each: (-len(each[1]), each[0]))
        ]
        judged = part.name in JUDGED
        parts.append(PartView(pool=pool, part=part.name, board=part.board, judged=judged, versions=tuple(views)))
    return Matrix(parts=tuple(parts), known_bad=_known_bad(fleet))


def _known_bad(fleet: Fleet) -> tuple[BadView, ...]:
    found: dict[tuple[str, str, str], list[str]] = {}
    for node in fleet.nodes:
        parts = fleet.versions.of(node)
        gsps = [version for part, version in parts.items() if part.name == "gsp"]
        for bad in {bad for gsp in (None, *gsps) for bad in known_bad(parts.get(DRIVER), gsp)}:
            found.setdefault((bad.what, bad.remedy, bad.source), []).append(node)
    return tuple(
        BadView(what=what, remedy=remedy, source=source, count=len(nodes), nodes=_first(nodes))
        for (what, remedy, source), nodes in sorted(found.items())
    )


def _first(nodes: dict[str, None] | list[str]) -> tuple[str, ...]:
    return tuple(sorted(nodes)[:MOST_NODES])
