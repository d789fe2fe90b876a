"""What NVML gives and what it lacks, so that DCGM is asked for the rest and put beside it. Pure: times come in.

NVML owns every reading that it gives: a reading is lacking once NVML has not given it of any GPU for
``need_after_s``, longer than it takes between two reads of its slowest. NVML's samples hold only what was read
for them, so a reading that is merely not due is not filled.
"""

from operator import attrgetter

import msgspec

from agent.sources.dcgm_fields import NAMES
from vocab.observations import GpuSample
from vocab.readings import Readings

FRESH_S = 5.0  # how old DCGM's part of a sample may be
AWAY_S = 120.0  # a connection is made anew within it; after that nobody knows what a DCGM would be needed for
_NAMES = tuple(sorted(NAMES))
_of = attrgetter(*_NAMES)
_NOTHING = Readings()


class Added(msgspec.Struct, frozen=True):
    """What DCGM last said of one GPU, and when that came."""

    values: dict[str, float]
    errors: dict[str, str]
    at: float


class Beside:
    """The memory of both. ``now`` is monotonic everywhere."""

    def __init__(self, need_after_s: float, alone_after_s: float, now: float) -> None:
        self._need_after_s = need_after_s
        self._alone_after_s = alone_after_s
        self._given_at: dict[str, float] = dict.fromkeys(NAMES, now)  # when NVML last gave each reading
        self._nvml_at = now  # when NVML last said anything of any GPU
        self._last: dict[str, Added] = {}  # of each GPU
        self._followed_until = float("-inf")  # what NVML gives is no matter while there is no DCGM

    def opened(self, now: float) -> None:
        """There is a DCGM: from now on it counts what NVML gives."""
        if now > self._followed_until:
            self._given_at = dict.fromkeys(NAMES, self._nvml_at)
        self._followed_until = float("inf")

    def complete(self, sample: GpuSample, now: float) -> GpuSample:
        """A sample of NVML's with what it lacks and DCGM has; where both have none, DCGM's reason."""
        self._nvml_at = now
        readings = sample.readings
        if readings is None or now > self._followed_until:
            return sample
        self._given_at.update(dict.fromkeys(_given(readings), now))
        ours = self._last.get(sample.gpu or "")
        if ours is None or now - ours.at > FRESH_S:
            return sample
        added = {name: value for name, value in ours.values.items() if self._lacks(readings, name, now)}
        reasons = {name: why for name, why in ours.errors.items() if self._lacks(readings, name, now)} | sample.errors
        errors = {name: why for name, why in reasons.items() if name not in added}
        if not added and errors == sample.errors:
            return sample
        return msgspec.structs.replace(sample, readings=msgspec.structs.replace(readings, **added), errors=errors)

    def keep(self, sample: GpuSample, now: float) -> bool:
        """Keep a sample of DCGM's; True if it stands for itself, because NVML says nothing."""
        values = _given(sample.readings or _NOTHING)
        self._last[sample.gpu or ""] = Added(values, sample.errors, now)
        return now - self._nvml_at > self._alone_after_s and bool(values or sample.error)

    def forget(self, now: float) -> None:
        """DCGM is gone: nothing of it is shown any more."""
        self._last = {}
        self._followed_until = min(self._followed_until, now + AWAY_S)

    def needs(self, now: float) -> frozenset[str]:
        """The readings that NVML does not give."""
        return frozenset(name for name, at in self._given_at.items() if now - at > self._need_after_s)

    def _lacks(self, readings: Readings, name: str, now: float) -> bool:
        return now - self._given_at[name] > self._need_after_s and getattr(readings, name) is None


def _given(readings: Readings) -> dict[str, float]:
    return {name: value for name, value in zip(_NAMES, _of(readings), strict=True) if value is not None}
