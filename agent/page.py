"""Which GPU readings go to the controller: those that a person would see change, and a sign of life of each.

Prometheus scrapes the readings; the controller needs them for its page and to know that a GPU answers. An
idle node sends one GPU every other heartbeat, so that the eight of a board come round well inside the
60 s after which a silent GPU counts as unknown.
"""

import msgspec

from vocab.messages import GpuStatus
from vocab.observations import GpuSample
from vocab.readings import Readings

# What the page shows, and the change that is worth a report.
STEPS: dict[str, float] = {
    "temperature_c": 2.0,
    "power_w": 25.0,
    "power_limit_w": 1.0,
    "utilization_ratio": 0.05,
    "sm_active_ratio": 0.05,
    "dram_active_ratio": 0.05,
    "memory_used_bytes": 256 * 2**20,
    "memory_total_bytes": 1.0,
}
ROUND_S = 32.0  # every GPU is sent at least this often


class Page(msgspec.Struct):
    """The last sample of each GPU, and its status as sent."""

    read: dict[str, GpuSample] = {}
    sent: dict[str, GpuStatus] = {}

    def take(self, gpu: str, sample: GpuSample) -> bool:
        """Note a read; True if the controller should hear of it at once (an error came or went)."""
        self.read[gpu] = sample
        before = self.sent.get(gpu)
        return before is not None and before.error != sample.error

    def report(self, now: float) -> tuple[GpuStatus, ...]:
        """What to send now: all that changed or is overdue after a standstill, else the one whose turn it is."""
        latest = {gpu: _status(gpu, sample) for gpu, sample in self.read.items()}
        due = [s for gpu, s in latest.items() if self._is_due(self.sent.get(gpu), s, now)]
        if due:
            return tuple(due)
        oldest = min(self.sent.values(), key=lambda status: status.at, default=None)
        share = ROUND_S / max(1, len(self.sent))
        newest = max((status.at for status in self.sent.values()), default=now)
        if oldest is None or (now - newest < share and now - oldest.at < ROUND_S):
            return ()
        status = latest[oldest.gpu]
        return (status,) if status.at > oldest.at else ()

    @staticmethod
    def _is_due(sent: GpuStatus | None, latest: GpuStatus, now: float) -> bool:
        return sent is None or _differs(sent, latest) or (now - sent.at >= ROUND_S and latest.at > sent.at)

    def delivered(self, statuses: tuple[GpuStatus, ...]) -> None:
        """These have reached the controller."""
        self.sent.update({status.gpu: status for status in statuses})

    def restart(self) -> None:
        """The controller has forgotten: send all anew."""
        self.sent.clear()

    def keep(self, gpus: frozenset[str]) -> None:
        """Forget GPUs that the node no longer has."""
        for gone in [gpu for gpu in self.read if gpu not in gpus]:
            self.read.pop(gone)
            self.sent.pop(gone, None)


def _status(gpu: str, sample: GpuSample) -> GpuStatus:
    return GpuStatus(gpu=gpu, at=round(sample.at, 3), readings=_shown(sample.readings), error=sample.error)


def _shown(readings: Readings | None) -> Readings | None:
    """What is shown: all of it is read each time, or a fact that each sample repeats."""
    if readings is None:
        return None
    return msgspec.convert({name: _rounded(getattr(readings, name)) for name in STEPS}, Readings)


def _rounded(value: float | None) -> float | None:
    return round(value, 3) if isinstance(value, float) else value


def _differs(old: GpuStatus, new: GpuStatus) -> bool:
    if old.error != new.error or (old.readings is None) != (new.readings is None):
        return True
    return any(
        _moved(getattr(old.readings, n, None), getattr(new.readings, n, None), step) for n, step in STEPS.items()
    )


def _moved(old: float | None, new: float | None, step: float) -> bool:
    if old is None or new is None:
        return old is not new
    return abs(new - old) >= step
