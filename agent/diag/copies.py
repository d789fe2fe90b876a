"""Copies: within the device against its memory's peak, to and from the host against what its PCIe link carries."""

from agent.diag.limits import ON_CPU, board_of, compared
from agent.diag.verdict import Subject, Verdict, passed, unknown
from vocab.catalogue.specs import GB, Spec, pcie_bytes_per_s
from vocab.diag import Copied

WITHIN_RATIO = 0.7  # a good copy reaches 85 to 93 % of the peak; less than 70 % is none of the usual spread [H]
BUS_RATIO = 0.5  # pinned copies reach 80 to 90 %; a far socket or a virtual machine costs up to a third [H]


def verdict(figures: Copied, subject: Subject) -> Verdict:
    """The worst of the three."""
    if figures.device != "cuda":
        return unknown(ON_CPU, {"within_bytes_per_s": round(figures.within_bytes_per_s)})
    found = [*_within(figures, subject), *_bus(figures, subject)]
    bad = next((each for each in found if each.result == "problem"), None)
    if bad is not None:
        return bad
    if not found:
        return unknown(f"no figures of {subject.board or 'this board'} are known, and none of its PCIe link")
    return passed("; ".join(each.text or "" for each in found))


def _within(figures: Copied, subject: Subject) -> list[Verdict]:
    spec = board_of(subject, figures.device)
    if not isinstance(spec, Spec):
        return []
    peak = spec.memory_bytes_per_s
    return [compared("within", figures.within_bytes_per_s, peak, WITHIN_RATIO, unit=GB, name="GB/s")]


def _bus(figures: Copied, subject: Subject) -> list[Verdict]:
    """The generation falls when idle, so its maximum counts; the width is that of now, and another check's matter."""
    readings = subject.readings
    if readings is None:
        return []
    peak = pcie_bytes_per_s(readings.pcie_generation_max, readings.pcie_width)
    if peak is None:
        return []
    ways = {"from the host": figures.up_bytes_per_s, "to the host": figures.down_bytes_per_s}
    return [compared(way, figure, peak, BUS_RATIO, unit=GB, name="GB/s") for way, figure in ways.items()]
