"""Recordings: JSON Lines, one observation a line, ``at`` not decreasing within a file."""

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from corral.replay.forgive import forgive
from vocab.errors import InputError
from vocab.events import FIRST_S, LAST_S
from vocab.observations import (
    AnyObservation,
    DriverEvent,
    GpuSample,
    Member,
    NodeSeen,
    Observation,
    PciDevice,
    ReplicaSeen,
)
from vocab.pci import pci_address

KINDS = {str(kind.__struct_config__.tag) for kind in AnyObservation.__args__}
NO_INSTANCE = 0xFFFFFFFF  # the driver's word for: not about one MIG instance


class _Head(msgspec.Struct):
    """What every line must have."""

    obs: str
    at: float


class Recording:
    """Some files, merged by time, then by the order in which they were named. ``skipped`` counts unknown kinds."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._head = msgspec.json.Decoder(_Head)
        self._body: msgspec.json.Decoder[AnyObservation] = msgspec.json.Decoder(AnyObservation)
        self.skipped: Counter[str] = Counter()

    def __iter__(self) -> Iterator[AnyObservation]:
        """The observations. Raises InputError naming file and line."""
        if len(self._paths) == 1:
            return self._read(self._paths[0])
        return heapq.merge(*(self._read(path) for path in self._paths), key=_at)

    def _read(self, path: Path) -> Iterator[AnyObservation]:
        last = float("-inf")
        try:
            with path.open("rb") as file:
                for number, raw in enumerate(file, 1):
                    at, observation = self._line(raw, path, number)
                    if at != math.inf and not FIRST_S <= at <= LAST_S:
                        raise InputError(f"{path}:{number}: at {at:g} is no time in seconds since the epoch")
                    if at < last:
                        raise InputError(f"{path}:{number}: at {at:g} is before {last:g}, the line before it")
                    last = at if at != math.inf else last
                    if observation is not None:
                        yield observation
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error

    def _line(self, raw: bytes, path: Path, number: int) -> tuple[float, AnyObservation | None]:
        """When, and what; an empty line is at no time."""
        try:
            observation = self._body.decode(raw)
        except msgspec.DecodeError:
            if not raw.strip():
                return math.inf, None
            return self._odd(raw, f"{path}:{number}")
        normal = _NORMAL.get(type(observation))
        return observation.at, observation if normal is None else normal(observation)

    def _odd(self, raw: bytes, place: str) -> tuple[float, AnyObservation | None]:
        """A line that is not as our own are: of a kind that we do not know, or of other types, or no observation."""
        try:
            head = self._head.decode(raw)
            if head.obs not in KINDS:
                self.skipped[head.obs] += 1
                return head.at, None
            observation = forgive(msgspec.json.decode(raw))
        except msgspec.ValidationError as error:
            raise InputError(f"{place}: not an observation: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{place}: not JSON: {error}") from error
        normal = _NORMAL.get(type(observation))
        return head.at, observation if normal is None else normal(observation)


def _at(observation: Observation) -> float:
    return observation.at


# -- one spelling of addresses, one way to say that no instance is meant --------------------------------


def _node(seen: NodeSeen) -> NodeSeen:
    devices = seen.pci_devices
    return replace(
        seen,
        gpus=tuple(replace(gpu, pci=_spelt(gpu.pci)) for gpu in seen.gpus),
        pci_devices=None if devices is None else tuple(_device(device) for device in devices),
    )


def _device(device: PciDevice) -> PciDevice:
    known = device.class_
    digits = None if known is None else "0x" + known.lower().removeprefix("0x")
    return replace(device, pci=_spelt(device.pci), class_=digits)


def _spelt(address: str) -> str:
    return pci_address(address) or address


def _sample(sample: GpuSample) -> GpuSample:
    return sample if sample.pci is None else replace(sample, pci=_spelt(sample.pci))


def _driver_event(event: DriverEvent) -> DriverEvent:
    whole = event.mig is not None and event.mig.gi >= NO_INSTANCE
    return replace(event, pci=event.pci and _spelt(event.pci), mig=None if whole else event.mig)


def _replica(seen: ReplicaSeen) -> ReplicaSeen:
    """The short form: ``gpus`` on one node, instead of members."""
    if seen.members or not seen.gpus or seen.node is None:
        return seen
    members = tuple(Member(node=seen.node, gpu=gpu, rank=rank) for rank, gpu in enumerate(seen.gpus))
    return replace(seen, members=members)


_NORMAL: dict[type, Callable[[Any], AnyObservation]] = {
    NodeSeen: _node,
    GpuSample: _sample,
    DriverEvent: _driver_event,
    ReplicaSeen: _replica,
}
