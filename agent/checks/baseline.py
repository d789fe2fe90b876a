"""The least that a GPU must show before it takes work: it is there, its memory is sound, its fabric and links are up.

Pure, from one sample. What the board or the driver does not tell is unknown, never a problem. Each problem carries the
code under which the judge knows it, so that both speak of one condition.
"""

from collections.abc import Callable

from agent.probes.fabric import COMPLETED, INCOMPLETE, NOT_SUPPORTED, UNHEALTHY, problems_of
from vocab.observations import Check, GpuSample
from vocab.readings import Readings

GONE = frozenset({"GPU_IS_LOST", "GPU_NOT_FOUND"})  # errors of a read that are about the GPU, not about the reader
HARMLESS = frozenset({"remap_pending", "retired_pages"})
ORDER = ("problem", "unknown", "pass")

Told = tuple[str, str | None, str | None]  # result, code, text
PASS: Told = ("pass", None, None)
UNKNOWN: Told = ("unknown", None, "the board or its driver does not tell")


def baseline(sample: GpuSample, at: float) -> tuple[Check, ...]:
    """One check a question, problems first."""
    if sample.error is not None or sample.readings is None:
        lost = sample.error in GONE
        text = f"it cannot be read: {sample.error or 'no readings'}"
        return (_check(sample, at, "presence", "problem" if lost else "unknown", "gpu_lost" if lost else None, text),)
    found = [_check(sample, at, "presence", *PASS)]
    found += [_check(sample, at, name, *look(sample.readings)) for name, look in _LOOKS.items()]
    found.append(_check(sample, at, "links", *_links(sample)))
    return tuple(sorted(found, key=lambda check: ORDER.index(check.result)))


def is_sound(sample: GpuSample) -> bool:
    """Whether work may start on it after a boot: no problem but one that the next reset ends and that harms none."""
    return not any(check.result == "problem" and check.code not in HARMLESS for check in baseline(sample, sample.at))


def _check(sample: GpuSample, at: float, name: str, result: str, code: str | None, text: str | None) -> Check:
    return Check(at=at, node=sample.node, check=name, gpu=sample.gpu, result=result, code=code, text=text)


def _ecc(readings: Readings) -> Told:
    if readings.sram_threshold_exceeded:
        return "problem", "sram_threshold", "the limit of SRAM errors is exceeded"
    count = readings.ecc_uncorrectable
    if count is None:
        return UNKNOWN
    return PASS if count == 0 else ("problem", "ecc_uncorrectable", f"{count} uncorrectable errors since the reset")


def _remap(readings: Readings) -> Told:
    if readings.remap_failed:
        return "problem", "remap_failed", "a row could not be remapped"
    if readings.remap_pending:
        return "problem", "remap_pending", "a remap still waits for a reset"
    if readings.retirement_pending:
        return "problem", "retired_pages", "a page still waits for its retirement"
    known = (readings.remap_failed, readings.remap_pending, readings.retirement_pending)
    return UNKNOWN if all(value is None for value in known) else PASS


def _fabric(readings: Readings) -> Told:
    state = readings.fabric_state
    if state is None or state == NOT_SUPPORTED:
        return UNKNOWN
    if state != COMPLETED or readings.fabric_status:
        return "problem", INCOMPLETE, f"its registration is not complete (state {state}, {readings.fabric_status})"
    wrong = problems_of(readings.fabric_health_mask or 0)
    return ("problem", UNHEALTHY, ", ".join(wrong)) if wrong else PASS


def _links(sample: GpuSample) -> Told:
    """All up is a pass. Which links are wired at all only the history tells, so of others the judge decides."""
    states = [link.state for link in sample.links.values() if link.state is not None]
    if states and all(states):
        return PASS
    down = sum(not state for state in states)
    return ("unknown", None, f"{down} of {len(states)} links are down; perhaps they are not wired") if down else UNKNOWN


_LOOKS: dict[str, Callable[[Readings], Told]] = {"ecc": _ecc, "remap": _remap, "fabric": _fabric}
