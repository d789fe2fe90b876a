"""Which fault explains which: a table, and a short memory of what was judged.

A secondary event points to its cause and, where the table says *quiet*, is only information then.
"""

from functools import lru_cache

import msgspec

from vocab.events import Event, Severity

MEMORY_S = 120.0
MOST_REMEMBERED = 512
NVLINK_FAULTS = frozenset({"xid:74", *(f"xid:{number}" for number in range(144, 151))})
NOT_ROOTS = frozenset({"xid:45", "xid:43", "xid:154", "xid:63"})  # outcomes and notes; they explain nothing


class Link(msgspec.Struct, frozen=True):
    """``effect`` is explained by one of ``causes`` (None: any Xid that can be a root) on the same GPU."""

    effect: str
    causes: frozenset[str] | None
    within_s: float
    quiet: bool = False
    any_gpu: bool = False
    standing: bool = False  # the cause may be older, as long as it stands


_LOSSES = frozenset({"xid:79", "xid:154", "xid:119", "xid:120"})
LINKS: tuple[Link, ...] = (
    Link("xid:45", None, 5.0, quiet=True),  # channels torn down after another fault
    Link("xid:45", NVLINK_FAULTS, 5.0, quiet=True, any_gpu=True),  # the peer's link fault ends our channels too
    Link("xid:154", None, 10.0),  # the driver's advice for the fault before it
    Link("xid:109", frozenset({"xid:13", "xid:31"}), 10.0),  # a stuck context after an exception
    Link("xid:119", frozenset({"xid:79", "xid:120", "xid:62"}), 60.0),  # the firmware no longer answers
    Link("xid:31", frozenset({"xid:122"}), 5.0),
    *(Link(f"xid:{number}", frozenset({"xid:48"}), 5.0) for number in (63, 64, 94, 95)),
    Link("gpu_lost", _LOSSES, 60.0, standing=True),
    Link("gpu_missing", _LOSSES | {"gpu_lost"}, 60.0, standing=True),
    Link("ecc_uncorrectable", frozenset({"xid:48", "xid:94", "xid:95", "xid:140"}), 60.0),
    Link("remap_pending", frozenset({"xid:63", "xid:48"}), 60.0),
    Link("remap_failed", frozenset({"xid:64", "xid:48"}), 60.0),
)
BY_EFFECT = {
    effect: tuple(link for link in LINKS if link.effect == effect) for effect in {link.effect for link in LINKS}
}
REPLICA_EFFECTS = frozenset({"replica_died", "replica_stalled"})
REPLICA_WITHIN_S = 60.0  # a killed engine exits within seconds; one that waits for a dead GPU is stalled after tens


class Known(msgspec.Struct, frozen=True):
    """What is remembered of an event."""

    id: str
    code: str
    gpu: str | None
    pid: int | None
    severity: Severity
    seen: float


class Memory(msgspec.Struct):
    """The latest event of each code on each GPU, of the last two minutes, newest last: few, whatever storms."""

    known: dict[str, Known] = {}

    def remember(self, event: Event, now: float) -> None:
        """Keep what can explain a later event."""
        if event.injected:
            return
        key = f"{event.gpu or event.pci} {event.code}"
        self.known.pop(key, None)
        self.known[key] = Known(event.id, event.code, event.gpu, event.pid, event.severity, now)
        while len(self.known) > MOST_REMEMBERED or now - next(iter(self.known.values())).seen > MEMORY_S:
            del self.known[next(iter(self.known))]

    def explains(self, event: Event, now: float) -> tuple[str | None, bool]:
        """The id of the event's cause (None: none is known), and whether that makes it mere information."""
        if event.injected:
            return None, False
        if event.code in REPLICA_EFFECTS:
            return self._hardware(event, now), False
        for link in BY_EFFECT.get(event.code, ()):
            found = self._find(link, event, now)
            if found is not None:
                return found.id, link.quiet
        return None, "caused_by_xid" in event.fields

    def _find(self, link: Link, event: Event, now: float) -> Known | None:
        printed = event.fields.get("caused_by_xid")
        wanted = frozenset({f"xid:{printed}"}) if printed is not None else link.causes
        within = MEMORY_S if printed is not None else link.within_s
        for known in reversed(self.known.values()):
            if now - known.seen > within:
                return None
            if _fits(known, wanted, event, any_gpu=link.any_gpu):
                return known
        return None

    def _hardware(self, event: Event, now: float) -> str | None:
        """The worst recent fault of a GPU that the replica runs on."""
        gpus = set(event.fields.get("gpus", ()))
        hits = [
            k
            for k in self.known.values()
            if (k.gpu in gpus or (k.pid is not None and k.pid == event.pid))
            and k.severity.rank >= Severity.ERROR.rank
            and now - k.seen <= REPLICA_WITHIN_S
        ]
        return max(hits, key=lambda k: (k.severity.rank, -k.seen)).id if hits else None


@lru_cache(maxsize=512)
def effects_of(code: str) -> frozenset[str]:
    """The codes that ``code`` can explain, for events that were judged before their cause was read."""
    return frozenset(link.effect for link in LINKS if _explains(link, code))


@lru_cache(maxsize=512)
def reaches_peers(code: str) -> bool:
    """Whether ``code`` can explain events of other GPUs."""
    return any(link.any_gpu for link in LINKS if _explains(link, code))


def _explains(link: Link, code: str) -> bool:
    if link.causes is None:
        return code.startswith("xid:") and code not in NOT_ROOTS
    return code in link.causes


def _fits(known: Known, wanted: frozenset[str] | None, event: Event, *, any_gpu: bool) -> bool:
    if known.id == event.id or known.code == event.code or known.gpu is None:
        return False
    if known.gpu != event.gpu and not any_gpu:
        return False
    if wanted is None:
        return known.code.startswith("xid:") and known.code not in NOT_ROOTS
    return known.code in wanted
