"""What the agent has read anyway: presence, ECC, remap, fabric and links as in a validation, and the PCIe link."""

import msgspec

from agent.checks.baseline import ORDER, baseline
from vocab.catalogue.specs import spec_of
from vocab.observations import Check, GpuSample
from vocab.readings import Readings


def checks(sample: GpuSample | None, gpu: str, node: str, at: float, board: str | None = None) -> tuple[Check, ...]:
    """Problems first. Without a sample that is young enough nothing is known."""
    if sample is None:
        text = "no reading of it is young enough"
        return (Check(at=at, node=node, check="presence", gpu=gpu, result="unknown", text=text),)
    found = [_wired(check, sample, board) for check in baseline(sample, at)]
    if sample.error is None and sample.readings is not None:
        found.append(_pcie(sample.readings, gpu, node, at))
    return tuple(sorted(found, key=lambda check: ORDER.index(check.result)))


def _wired(check: Check, sample: GpuSample, board: str | None) -> Check:
    """Some links up and some down is a problem where all GPUs of a board are wired whole; else only history tells.

    With all of them down the GPU may have been given to a virtual machine alone.
    """
    states = [link.state for link in sample.links.values() if link.state is not None]
    spec = spec_of(board)
    if check.check != "links" or spec is None or not spec.nvlink_bytes_per_s or all(states) or not any(states):
        return check
    down = sum(not state for state in states)
    text = f"{down} of {len(states)} links are down"
    return msgspec.structs.replace(check, result="problem", code="nvlink_down", text=text)


def _pcie(readings: Readings, gpu: str, node: str, at: float) -> Check:
    """The width; the generation falls when idle and is judged under load by the agent all the time."""
    width, most = readings.pcie_width, readings.pcie_width_max
    if width is None or most is None:
        text = "the board or its driver does not tell"
        return Check(at=at, node=node, check="pcie", gpu=gpu, result="unknown", text=text)
    if width < most:
        text = f"the link has {width} of {most} lanes"
        return Check(at=at, node=node, check="pcie", gpu=gpu, result="problem", code="pcie_width", text=text)
    return Check(at=at, node=node, check="pcie", gpu=gpu, result="pass", text=f"{width} lanes")
