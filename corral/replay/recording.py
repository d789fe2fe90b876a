"""Recordings: JSON Lines, one observation a line, ``at`` not decreasing within a file."""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from vocab.errors import InputError
from vocab.observations import AnyObservation, Observation

KINDS = {str(kind.__struct_config__.tag) for kind in AnyObservation.__args__}


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
        return heapq.merge(*(self._read(path) for path in self._paths), key=_at)

    def _read(self, path: Path) -> Iterator[AnyObservation]:
        last = float("-inf")
        try:
            with path.open("rb") as file:
                for number, raw in enumerate(file, 1):
                    observation = self._decode(raw, f"{path}:{number}") if raw.strip() else None
                    if observation is None:
                        continue
                    if observation.at < last:
                        raise InputError(
                            f"{path}:{number}: at {observation.at:g} is before {last:g}, the line before it"
                        )
                    last = observation.at
                    yield observation
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error

    def _decode(self, raw: bytes, place: str) -> AnyObservation | None:
        try:
            head = self._head.decode(raw)
            if head.obs in KINDS:
                return self._body.decode(raw)
        except msgspec.ValidationError as error:
            raise InputError(f"{place}: not an observation: {error}") from error
        except msgspec.DecodeError as error:
            raise InputError(f"{place}: not JSON: {error}") from error
        self.skipped[head.obs] += 1
        return None


def _at(observation: Observation) -> float:
    return observation.at
