"""The records of one fault count once: an SXid's headline, severity and data; the words around an Xid 79."""

import msgspec

from agent.probes.probe import Finding
from agent.probes.ruling import Part, Ruling

WINDOW_S = 2.0  # the driver prints the lines of one fault within milliseconds
MOST = 256


class Head(msgspec.Struct, frozen=True):
    """The first record of a fault; not ``whole``: a part of it whose head is still to come, or was lost."""

    seen: float
    finding: Finding
    whole: bool


class Bursts:
    """The faults of the last moments. Not stored: what a restart cuts in two is two evidences of one event."""

    def __init__(self) -> None:
        self._heads: dict[str, Head] = {}

    def join(self, ruling: Ruling, finding: Finding, now: float) -> Finding:
        """The finding, counted unless it belongs to a fault that was; a part has its head's judgement."""
        if ruling.burst is None:
            return finding
        key = f"{finding.gpu or finding.pci or ''}\x1f{ruling.burst}\x1f{finding.injected}"
        head = self._heads.get(key)
        if head is not None and abs(now - head.seen) > WINDOW_S:
            head = None
        if ruling.part in {Part.WHOLE, Part.CLOSING}:
            self._put(key, Head(now, finding, whole=True))
            begun = ruling.part is Part.CLOSING and head is not None and not head.whole
            return msgspec.structs.replace(finding, count=0) if begun else finding
        if head is not None:
            return _part_of(head.finding, finding)
        if ruling.part is Part.PIECE:
            self._put(key, Head(now, finding, whole=False))
        return msgspec.structs.replace(finding, flags=(*finding.flags, *ruling.orphan))

    def _put(self, key: str, head: Head) -> None:
        self._heads.pop(key, None)
        self._heads[key] = head
        if len(self._heads) > MOST:
            del self._heads[next(iter(self._heads))]


def _part_of(head: Finding, finding: Finding) -> Finding:
    """More evidence of a fault that was counted. What a part itself says of the severity is worth more than a guess."""
    known = head.fields.get("fatal") is not None or finding.fields.get("fatal") is None
    judged = head if known else finding
    kept = {name: value for name, value in head.fields.items() if value is not None}
    return msgspec.structs.replace(
        finding,
        code=head.code,
        count=0,
        device=head.device,
        severity=judged.severity,
        recovery=judged.recovery,
        fields=finding.fields | kept,
        pid=head.pid if finding.pid is None else finding.pid,
    )
