"""What the agent has read anyway: presence, ECC, remap, fabric and links as in a validation, and the PCIe link."""

from agent.checks.baseline import ORDER, baseline
from vocab.observations import Check, GpuSample
from vocab.readings import Readings


def checks(sample: GpuSample | None, gpu: str, node: str, at: float) -> tuple[Check, ...]:
    """Problems first. Without a sample that is young enough nothing is known."""
    if sample is None:
        text = "no reading of it is young enough"
        return (Check(at=at, node=node, check="presence", gpu=gpu, result="unknown", text=text),)
    found = [*baseline(sample, at)]
    if sample.error is None and sample.readings is not None:
        found.append(_pcie(sample.readings, gpu, node, at))
    return tuple(sorted(found, key=lambda check: ORDER.index(check.result)))


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
