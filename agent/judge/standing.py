"""What is wrong now: one entry for every condition that events opened and nothing has cleared yet.

The catalogue says what clears a code: the return of its signal, a reset of the GPU, a reboot of the node,
or a person (then only the controller forgets it). The wider always clears the narrower.
"""

import math
from collections.abc import Container, Iterable

import msgspec

from agent.probes.probe import Clear
from vocab.catalogue.codes import row
from vocab.events import HISTORY, Cleared, Event, Severity, rfc3339
from vocab.states import ClearsOn

ENDED_BY: dict[str, frozenset[ClearsOn]] = {
    "signal": frozenset({ClearsOn.SIGNAL}),
    "reset": frozenset({ClearsOn.SIGNAL, ClearsOn.RESET}),
    "reboot": frozenset({ClearsOn.SIGNAL, ClearsOn.RESET, ClearsOn.REBOOT}),
}


class Standing(msgspec.Struct, frozen=True):
    """One open condition, as the event that opened it names it."""

    code: str
    event: str
    gpu: str | None
    device: str | None
    name: str | None
    boot_id: str | None


class Board(msgspec.Struct):
    """The open conditions of the node."""

    open: dict[str, Standing] = {}

    def opens(self, event: Event) -> bool:
        """Note what the event opens; True if it was not open before."""
        if event.injected or event.severity is Severity.INFO or not row(event.code).condition:
            return False
        if event.fields.get(HISTORY):
            return False
        name = name_of(event)
        key = _key(event.code, event.gpu, event.device, name)
        new = key not in self.open
        self.open[key] = Standing(event.code, event.id, event.gpu, event.device, name, event.boot_id)
        return new

    def clear(self, clear: Clear, node: str, boot_id: str | None) -> list[Cleared]:
        """End the condition whose signal is back, if its code lets a signal end it."""
        key = _key(clear.code, clear.gpu, clear.device, clear.name)
        if clear.proven and key in self.open:
            return [_cleared(self.open.pop(key), "signal", clear.at, node, boot_id)]
        return self._end([key] if key in self.open else [], "signal", clear.at, node, boot_id)

    def reset(self, gpu: str, at: float, node: str, boot_id: str | None) -> list[Cleared]:
        """End what a reset of this GPU ends."""
        keys = [key for key, standing in self.open.items() if standing.gpu == gpu]
        return self._end(keys, "reset", at, node, boot_id)

    def reboot(self, at: float, node: str, boot_id: str | None, here: Container[str]) -> list[Cleared]:
        """End what a reboot ends of what stood before this boot. A GPU that it has not brought back is as before."""
        earlier = [key for key, one in self.open.items() if one.boot_id not in {None, boot_id}]
        keys = [key for key in earlier if (gpu := self.open[key].gpu) is None or gpu in here]
        return self._end(keys, "reboot", at, node, boot_id)

    def drop(self, gpu: str) -> None:
        """Forget what stands on a GPU: a person called it healthy, and the controller knows."""
        self.open = {key: standing for key, standing in self.open.items() if standing.gpu != gpu}

    def cause(self, gpu: str | None, codes: Iterable[str]) -> str | None:
        """The event of a condition of these codes that stands on the GPU."""
        wanted = frozenset(codes)
        return next((s.event for s in self.open.values() if s.gpu == gpu and s.code in wanted), None)

    def _end(self, keys: list[str], by: str, at: float | None, node: str, boot_id: str | None) -> list[Cleared]:
        ended = []
        for key in keys:
            if row(self.open[key].code).clears_on in ENDED_BY[by]:
                gone = self.open.pop(key)
                ended.append(_cleared(gone, by, at, node, boot_id))
        return ended


def name_of(event: Event) -> str | None:
    """What tells conditions of one code on one node apart: a replica, a source, a service."""
    found = event.fields.get("replica") or event.fields.get("source") or event.fields.get("service")
    return str(found) if found else None


def _cleared(gone: Standing, by: str, at: float | None, node: str, boot_id: str | None) -> Cleared:
    return Cleared(
        at=rfc3339(0.0 if at is None or math.isnan(at) else at),
        node=node,
        boot_id=boot_id,
        gpu=gone.gpu,
        device=gone.device,
        code=gone.code,
        by=by,
        event=gone.event,
        name=gone.name,
    )


def _key(code: str, gpu: str | None, device: str | None, name: str | None) -> str:
    return "\x1f".join((code, gpu or "", device or "", name or ""))
