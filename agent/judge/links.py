"""Which fault explains which: a table, and a short memory of what was judged.

A secondary event points to its cause and, where the table says *quiet*, is only information then. The memory
stands by place (a GPU, else an address) and code, so that no question looks at all of it, whatever storms.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

import msgspec

from vocab.events import Event, Severity

MEMORY_S = 120.0
MOST_CODES = 48  # of one place; one address has few, and a log with made-up numbers must not grow without end
MOST_PLACES = 128
MOST_PEERS = 16
SWITCH = "sxid"  # stands for every fatal SXid
NVLINK_FAULTS = frozenset({"xid:74", "xid:136", "xid:155", *(f"xid:{number}" for number in range(144, 151))})
NOT_ROOTS = frozenset({"xid:45", "xid:43", "xid:154", "xid:63"})  # outcomes and notes; they explain nothing


class Link(msgspec.Struct, frozen=True):
    """``effect`` is explained by the worst of ``causes`` (None: any Xid that can be a root) on the same GPU.

    ``any_gpu``: by the last one on any GPU of the node. ``standing``: the cause may be older, as long as it stands.
    ``where``: only for effects that have this field set. ``by_address``: not if both name an address and these differ.
    """

    effect: str
    causes: frozenset[str] | None
    within_s: float
    quiet: bool = False
    any_gpu: bool = False
    standing: bool = False
    where: str | None = None
    by_address: bool = False


def _xids(*numbers: int) -> frozenset[str]:
    return frozenset(f"xid:{number}" for number in numbers)


_LOSSES = _xids(79, 154, 119, 120)
_MEMORY = _xids(48, 94, 95, 140)
_DEAD = _xids(79, 62, 119, 120, 143)  # a GPU that no longer answers takes down the links to it
LINKS: tuple[Link, ...] = (
    Link("xid:45", None, 5.0, quiet=True),  # channels torn down after another fault
    Link("xid:45", _xids(43), 5.0, quiet=True),  # or with a channel that was reset
    Link("xid:45", NVLINK_FAULTS | {SWITCH}, 5.0, quiet=True, any_gpu=True),  # a peer's fault ends our channels too
    Link("xid:43", None, 5.0),  # the process that met a fault must end
    Link("xid:154", None, 10.0),  # the driver's advice for the fault before it
    Link("xid:109", _xids(13, 31), 10.0),  # a stuck context after an exception
    Link("xid:119", _xids(79, 120, 62, 95), 60.0),  # the firmware no longer answers
    *(Link(f"xid:{number}", _xids(79), 60.0) for number in (120, 62, 109, 13, 31, 32, 46, 69)),  # of a GPU that is gone
    Link("xid:31", _xids(122), 5.0),
    *(Link(f"xid:{number}", _MEMORY, 5.0) for number in (13, 31, 32, 69)),  # programs run on what is lost
    # One memory error in several messages: 48 has the address, the others what became of it.
    *(Link(f"xid:{number}", _xids(48), 5.0, by_address=True) for number in (63, 64, 94, 95)),
    Link("xid:171", _xids(48), 5.0, quiet=True, by_address=True),
    Link("xid:172", _xids(48, 94, 95), 5.0, quiet=True),
    # The far end of a link: a switch, or a GPU that died. Bits that are only an echo are no more than information.
    Link("xid:74", _DEAD | {SWITCH, "xid:74"}, 5.0, quiet=True, any_gpu=True, where="secondary"),
    Link("xid:74", _DEAD | {SWITCH}, 5.0, any_gpu=True),
    Link("sxid:20034", _DEAD, 30.0, any_gpu=True),  # the switch's ports see that the GPU's end went away
    Link("fabric_unhealthy", frozenset({SWITCH}), 5.0, any_gpu=True),  # the fabric manager repeats what switches say
    Link("aer", _xids(79), 10.0),  # requests to a GPU that is gone run out of time
    Link("xid:94", _xids(137), 5.0, any_gpu=True),  # a refused access of a peer ends in a contained error
    Link("gpu_init_failed", _xids(79, 62, 119, 120, 143), 60.0, standing=True),
    Link("gpu_lost", _LOSSES, 60.0, standing=True),
    Link("gpu_missing", _LOSSES | {"gpu_lost"}, 60.0, standing=True),
    Link("recovery_action", None, 60.0),  # the reading of what Xid 154 says, where it is printed
    Link("ecc_uncorrectable", _MEMORY, 60.0),
    Link("sram_threshold", _MEMORY | _xids(172), 60.0),
    Link("remap_pending", _xids(63, 48), 60.0),
    Link("remap_failed", _xids(64, 48), 60.0),
)
BY_EFFECT = {
    effect: tuple(link for link in LINKS if link.effect == effect) for effect in {link.effect for link in LINKS}
}
PEER_CAUSES = frozenset(code for link in LINKS if link.any_gpu for code in link.causes or ())
REPLICA_EFFECTS = frozenset({"replica_died", "replica_stalled"})
REPLICA_WITHIN_S = 60.0  # a killed engine exits within seconds; one that waits for a dead GPU is stalled after tens


class Known(msgspec.Struct, frozen=True):
    """What is remembered of an event. ``echo``: it only repeats another link's fault and explains nothing."""

    id: str
    code: str
    place: str | None
    gpu: str | None
    pid: int | None
    severity: Severity
    seen: float
    address: str | None = None
    echo: bool = False


class Memory(msgspec.Struct):
    """The latest event of each code (and memory address) at each place, and of what reaches other GPUs, by code."""

    places: dict[str, dict[str, Known]] = {}
    peers: dict[str, dict[str, Known]] = {}

    def remember(self, event: Event, now: float) -> None:
        """Keep what can explain a later event."""
        place = place_of(event)
        if event.injected or place is None:
            return
        known = Known(
            event.id,
            event.code,
            place,
            event.gpu,
            event.pid,
            event.severity,
            now,
            _address(event),
            bool(event.fields.get("secondary")),
        )
        _keep(self.places, place, MOST_PLACES)
        _put(self.places[place], f"{event.code} {known.address or ''}", known, MOST_CODES)
        name = class_of(event.code)
        if name in PEER_CAUSES and (name != SWITCH or event.severity.rank >= Severity.ERROR.rank):
            _put(self.peers.setdefault(name, {}), place, known, MOST_PEERS)

    def explains(self, event: Event, now: float) -> tuple[str | None, bool]:
        """The id of the event's cause (None: none is known), and whether that makes it mere information."""
        if event.injected:
            return None, False
        if event.code in REPLICA_EFFECTS:
            return self._hardware(event, now), False
        printed = event.fields.get("caused_by_xid")
        if printed is not None:
            return self._printed(event, f"xid:{printed}", now), True
        for link in BY_EFFECT.get(event.code, ()):
            if link.where is None or event.fields.get(link.where):
                found = self._find(link, event, now)
                if found is not None:
                    return found.id, link.quiet
        return None, False

    def told(self, event: Event) -> str | None:
        """The last event of this code at this place, however long ago."""
        alike = (known for known in self._at(place_of(event)) if known.code == event.code)
        last = max(alike, key=lambda known: known.seen, default=None)
        return last.id if last else None

    def _printed(self, event: Event, code: str, now: float) -> str | None:
        """The fault that the line itself names: on this GPU, else on another of the node."""
        here = (known for known in self._at(place_of(event)) if known.code == code)
        there = self.peers.get(code, {}).values()
        for group in (here, there):
            found = _latest(group, event, now, MEMORY_S)
            if found is not None:
                return found.id
        return None

    def _find(self, link: Link, event: Event, now: float) -> Known | None:
        if link.causes is None:
            group: Iterable[Known] = (known for known in self._at(place_of(event)) if can_be_root(known.code))
        elif link.any_gpu:
            group = (known for code in link.causes for known in self.peers.get(code, {}).values())
            group = (known for known in group if not (known.echo and link.where))
        else:
            group = (known for known in self._at(place_of(event)) if known.code in link.causes)
        if link.by_address and (address := _address(event)):
            group = [known for known in group if known.address in {None, address}]
            group = [known for known in group if known.address] or group
        if link.any_gpu:
            return _latest(group, event, now, link.within_s)
        return max(_near(group, event, now, link.within_s), key=_how_bad, default=None)

    def _at(self, place: str | None) -> Iterable[Known]:
        return self.places.get(place or "", {}).values()

    def _hardware(self, event: Event, now: float) -> str | None:
        """The worst recent fault of a GPU that the replica runs on."""
        gpus = event.fields.get("gpus", ())
        beside = [known for gpu in gpus for known in self._at(gpu)]
        if event.pid is not None:
            beside += [known for codes in self.places.values() for known in codes.values() if known.pid == event.pid]
        hits = [k for k in beside if k.severity.rank >= Severity.ERROR.rank and abs(now - k.seen) <= REPLICA_WITHIN_S]
        return max(hits, key=lambda k: (k.severity.rank, -k.seen)).id if hits else None


def place_of(event: Event) -> str | None:
    """Where an event happened: its GPU, else its address."""
    return event.gpu or event.pci


def _address(event: Event) -> str | None:
    """The memory address that an event names, without the leading zeros that one message has and another has not."""
    address = event.fields.get("phys_addr")
    if not isinstance(address, str):
        return None
    digits = address.lower().removeprefix("0x").lstrip("0")
    return f"0x{digits or 0}"


def class_of(code: str) -> str:
    """The name under which a code stands in the table: all SXids are one."""
    return SWITCH if code.startswith("sxid:") else code


def can_be_root(code: str) -> bool:
    """Whether a code is a fault that can have others as its effects."""
    return code.startswith("xid:") and code not in NOT_ROOTS


@lru_cache(maxsize=512)
def effects_of(code: str) -> frozenset[str]:
    """The codes that ``code`` can explain, for events that were judged before their cause was read."""
    return frozenset(link.effect for link in LINKS if _explains(link, code))


@lru_cache(maxsize=512)
def reaches_peers(code: str) -> bool:
    """Whether ``code`` can explain events of other GPUs."""
    return any(link.any_gpu for link in LINKS if _explains(link, code))


def _explains(link: Link, code: str) -> bool:
    return can_be_root(code) if link.causes is None else class_of(code) in link.causes


def _latest(group: Iterable[Known], event: Event, now: float, within_s: float) -> Known | None:
    """The last of these that came near the event in time; never the event itself or another of its kind and place."""
    return max(_near(group, event, now, within_s), key=lambda known: known.seen, default=None)


def _how_bad(known: Known) -> tuple[bool, int, float]:
    """The worst explains most: what it brings about, and the driver's word on it, explain less. Else the last."""
    return known.code != "xid:154", known.severity.rank, known.seen


def _near(group: Iterable[Known], event: Event, now: float, within_s: float) -> Iterator[Known]:
    place = place_of(event)
    for known in group:
        same = known.id == event.id or (known.code == event.code and known.place == place)
        if not same and abs(now - known.seen) <= within_s:
            yield known


def _keep(places: dict[str, dict[str, Known]], place: str, most: int) -> None:
    places[place] = places.pop(place, {})
    while len(places) > most:
        del places[next(iter(places))]


def _put(shelf: dict[str, Known], key: str, known: Known, most: int) -> None:
    shelf.pop(key, None)
    shelf[key] = known
    while len(shelf) > most:
        del shelf[next(iter(shelf))]
