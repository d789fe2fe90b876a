"""Which replicas can take a request: pure, from the controller's list, probes and what requests met.

    controller's list --merge--> table <--read-- probes of /ready
                                   ^---met--- requests

Rules:
- A controller that forgets a replica is not believed while the replica answers: the loss of an observer is
  not a fault. What it lists as stopped is dropped at once.
- Two names cannot share an address: the one that is listed now has it.
- Evidence is ordered by when it began, so a probe that was under way does not undo what a request met.
- A refused connection counts at once; an answer that does not come counts after ``SILENT_S``: a saturated
  engine is slow, not gone.
- Panic floor: when fewer than half of a deployment's replicas are routable, fenced ones that answer are
  used too. Replicas that have not served yet, and those that leave, do not count.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType

import msgspec

SILENT_S = 5.0  # as long as an engine may go without a step before it is called stalled
FORGET_S = 30.0  # a replica that nobody lists and that does not answer is gone
DEPLOYMENT_S = 600.0  # a deployment that nobody lists is still known that long: 503, not 404
DOUBT_S = 10.0  # after a lost connection or a late probe others are preferred for that long


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A replica as the controller lists it (and as the gateway keeps it on disk)."""

    replica: str
    deployment: str
    node: str = ""
    state: str = ""
    url: str | None = ""
    ready: bool = False
    admitting: bool = True
    observed: bool = False  # found on its node: its owner has not handed it over, and nothing is sent there


class Standing(StrEnum):
    """What a replica last showed of itself."""

    UNSEEN = "unseen"
    READY = "ready"
    LOADING = "loading"
    FENCED = "fenced"
    DRAINING = "draining"
    UNWELL = "unwell"  # it answers and takes nothing, for another reason
    REFUSED = "refused"  # nothing listens there, or the connection broke
    SILENT = "silent"  # no answer for SILENT_S


ANSWERS = frozenset({Standing.READY, Standing.LOADING, Standing.FENCED, Standing.DRAINING, Standing.UNWELL})
UNCOUNTED = frozenset({Standing.UNSEEN, Standing.DRAINING})  # nothing is known of it yet, or it leaves
SERVES = frozenset({Standing.READY, Standing.FENCED})


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One replica. Times are monotonic seconds."""

    listed: Listed
    standing: Standing = Standing.UNSEEN
    judged_at: float  # when the latest evidence began
    answered_at: float  # when it last answered anything (at first: when it was first listed)
    served: bool = False  # it has been ready once: from then on its absence is a loss
    doubted_until: float = 0.0
    resumes: str = ""  # the model whose broken answers it can go on with, as it says itself; empty: none

    @property
    def replica(self) -> str:
        """Its name."""
        return self.listed.replica

    @property
    def url(self) -> str:
        """Its address, without a slash at the end; empty if not known yet."""
        return (self.listed.url or "").rstrip("/")

    def doubted(self, now: float) -> bool:
        """Whether others should be preferred."""
        return now < self.doubted_until


class Table(msgspec.Struct, frozen=True):
    """All replicas by name, and when each deployment was last listed."""

    entries: Mapping[str, Entry] = MappingProxyType({})
    deployments: Mapping[str, float] = MappingProxyType({})


class Routable(msgspec.Struct, frozen=True):
    """What a request of one deployment may be sent to. ``fenced`` is empty unless ``panic``."""

    ready: tuple[Entry, ...] = ()
    fenced: tuple[Entry, ...] = ()
    panic: bool = False
    counted: int = 0  # replicas that should serve


def merge(table: Table, answer: Iterable[Listed], now: float) -> Table:
    """The table after the controller (or the disk) told what replicas there are."""
    named = {listed.replica: listed for listed in answer}
    live = {name: listed for name, listed in named.items() if listed.state != "stopped"}
    entries = {name: _listed(table.entries.get(name), listed, now) for name, listed in live.items()}
    taken = {entry.url for entry in entries.values() if entry.url}
    for name, entry in table.entries.items():
        heard = now - entry.answered_at <= FORGET_S
        if name not in named and heard and entry.url not in taken:
            entries[name] = entry
    deployments = {name: at for name, at in table.deployments.items() if now - at <= DEPLOYMENT_S}
    present = [entry.listed for entry in entries.values()]
    deployments |= {listed.deployment: now for listed in (*named.values(), *present)}
    return Table(entries, deployments)


def _listed(old: Entry | None, listed: Listed, now: float) -> Entry:
    if old is not None and (not listed.url or listed.url.rstrip("/") == old.url):
        listed = msgspec.structs.replace(listed, url=old.listed.url)
        return msgspec.structs.replace(old, listed=listed, served=old.served or listed.ready)
    return Entry(listed=listed, judged_at=now, answered_at=now, served=listed.ready)


def read(table: Table, replica: str, standing: Standing, began: float, now: float, resumes: str = "") -> Table:
    """The table after a probe that ``began`` then; SILENT means that no answer came in time."""
    entry = table.entries.get(replica)
    if entry is None or began < entry.judged_at:
        return table
    if standing is not Standing.SILENT:
        entry = msgspec.structs.replace(entry, resumes=resumes)
        return _put(table, _judged(entry, standing, began, now))
    doubt = max(entry.doubted_until, now + DOUBT_S)
    if now - entry.answered_at >= SILENT_S:
        entry = msgspec.structs.replace(entry, standing=Standing.SILENT, judged_at=began)
    return _put(table, msgspec.structs.replace(entry, doubted_until=doubt))


def met(table: Table, replica: str, standing: Standing, now: float, *, lost: bool = False) -> Table:
    """The table after a request met the replica so; ``lost``: it broke off while it worked on it."""
    entry = table.entries.get(replica)
    if entry is None:
        return table
    entry = _judged(entry, standing, now, now)
    if lost:
        entry = msgspec.structs.replace(entry, doubted_until=now + DOUBT_S)
    return _put(table, entry)


def _judged(entry: Entry, standing: Standing, began: float, now: float) -> Entry:
    answered_at = now if standing in ANSWERS else entry.answered_at
    served = entry.served or standing in SERVES
    return msgspec.structs.replace(entry, standing=standing, judged_at=began, answered_at=answered_at, served=served)


def _put(table: Table, entry: Entry) -> Table:
    return Table({**table.entries, entry.replica: entry}, table.deployments)


def of_model(found: Routable, resumes: str) -> Routable:
    """Those that can go on with an answer of this model."""
    ready, fenced = (tuple(one for one in some if one.resumes == resumes) for some in (found.ready, found.fenced))
    return msgspec.structs.replace(found, ready=ready, fenced=fenced)


def of_deployment(table: Table, deployment: str) -> tuple[Entry, ...]:
    """The replicas of one deployment, by name."""
    found = (entry for entry in table.entries.values() if entry.listed.deployment == deployment)
    return tuple(sorted(found, key=lambda entry: entry.replica))


def routable(table: Table, deployment: str) -> Routable:
    """What a request of this deployment may be sent to now."""
    entries = of_deployment(table, deployment)
    ready = tuple(entry for entry in entries if entry.standing is Standing.READY)
    counted = sum(entry.served and entry.standing not in UNCOUNTED for entry in entries)
    panic = 2 * len(ready) < counted
    fenced = tuple(entry for entry in entries if entry.standing is Standing.FENCED) if panic else ()
    return Routable(ready, fenced, panic, counted)
