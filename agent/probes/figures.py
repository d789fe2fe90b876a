"""A finding that rests on a GPU's readings: the shape that the probes of samples share."""

from typing import Any

import msgspec

from agent.probes.probe import Finding
from vocab.events import Evidence, Severity, Source, rfc3339
from vocab.observations import GpuSample


def shown(sample: GpuSample, names: tuple[str, ...]) -> dict[str, Any]:
    """The readings of these names that are known."""
    readings = msgspec.to_builtins(sample.readings) or {}
    return {name: readings[name] for name in names if name in readings}


def finding(
    sample: GpuSample,
    gpu: str,
    code: str,
    text: str,
    *,
    names: tuple[str, ...],
    first: tuple[Any, ...] | None = None,
    severity: Severity | None = None,
    fields: dict[str, Any] | None = None,
) -> Finding:
    """``code`` on ``gpu``, with the readings ``names`` as evidence; ``first`` defaults to the stamp."""
    stamp, source = rfc3339(sample.at), sample.source or "nvml"
    return Finding(
        code=code,
        at=sample.at,
        gpu=gpu,
        severity=severity,
        source=Source(source) if source in set(Source) else Source.NVML,
        first=first or (stamp, code, 0),
        fields=fields or {},
        text=text,
        evidence=(Evidence(source=source, at=stamp, readings=shown(sample, names)),),
    )
