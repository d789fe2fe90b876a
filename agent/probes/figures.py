"""Findings that rest on figures: of a GPU's sample, or of the node. The shapes that the probes of readings share."""

import math
from collections.abc import Mapping
from typing import Any

import msgspec

from agent.probes.probe import Finding
from agent.probes.scene import Scene
from vocab.events import Evidence, Mig, Recovery, Scope, Severity, Source, rfc3339
from vocab.observations import AnyObservation, GpuSample
from vocab.readings import Readings

_SOURCES = frozenset(Source)


class Read(msgspec.Struct, frozen=True):
    """A sample that could be read, and whose it is."""

    gpu: str
    sample: GpuSample
    readings: Readings


def read(observation: AnyObservation | Read, scene: Scene) -> Read | None:
    """The observation as a sample with readings of a GPU that is known, or None. One that is read already stays."""
    if isinstance(observation, Read):
        return observation
    if not isinstance(observation, GpuSample) or observation.readings is None:
        return None
    gpu = scene.sampled(observation)
    return None if gpu is None else Read(gpu, observation, observation.readings)


def shown(sample: GpuSample, names: tuple[str, ...]) -> dict[str, Any]:
    """The readings of these names that are known, and of the others why they are not."""
    found = {name: getattr(sample.readings, name, None) for name in names}
    return {name: sample.errors.get(name) if value is None else value for name, value in found.items()
            if value is not None or name in sample.errors}  # fmt: skip


def source_of(sample: GpuSample) -> Source:
    """Who read the sample."""
    source = sample.source or "nvml"
    return Source(source) if source in _SOURCES else Source.NVML


def finding(
    sample: GpuSample,
    gpu: str,
    code: str,
    text: str,
    *,
    names: tuple[str, ...],
    first: tuple[Any, ...] | None = None,
    severity: Severity | None = None,
    recovery: Recovery | None = None,
    fields: Mapping[str, Any] | None = None,
    device: str | None = None,
) -> Finding:
    """``code`` on ``gpu``, with the readings ``names`` as evidence; ``first`` defaults to the stamp."""
    stamp = rfc3339(sample.at)
    return Finding(
        code=code,
        at=sample.at,
        gpu=gpu,
        severity=severity,
        recovery=recovery,
        device=device,
        source=source_of(sample),
        first=first or (stamp, code, 0),
        fields=dict(fields or {}),
        text=text,
        evidence=(Evidence(source=sample.source or "nvml", at=stamp, readings=shown(sample, names)),),
    )


def storable(figures: Mapping[str, Any] | None) -> dict[str, Any]:
    """Figures that others named and typed, as they can be stored: a number of more than 64 bits as its digits."""
    return {name: str(v) if isinstance(v, int) and abs(v) >= 2**63 else v for name, v in (figures or {}).items()}


def node_finding(
    code: str,
    at: float,
    text: str,
    *,
    source: Source = Source.HOST,
    first: tuple[Any, ...] = (),
    gpu: str | None = None,
    mig: Mig | None = None,
    scope: Scope | None = None,
    pid: int | None = None,
    process: str | None = None,
    device: str | None = None,
    severity: Severity | None = None,
    recovery: Recovery | None = None,
    fields: Mapping[str, Any] | None = None,
    readings: Mapping[str, Any] | None = None,
) -> Finding:
    """``code`` that no sample shows: of the node, or of a GPU as seen from it. ``at`` NaN: nobody knows when."""
    stamp = None if math.isnan(at) else rfc3339(at)
    return Finding(
        code=code,
        at=at,
        gpu=gpu,
        mig=mig,
        scope=scope,
        pid=pid,
        process=process,
        device=device,
        severity=severity,
        recovery=recovery,
        source=source,
        first=(code, *first, stamp),
        fields=storable(fields),
        text=text,
        evidence=(
            Evidence(
                source=source.value, at=stamp, line=None if readings else text, readings=storable(readings) or None
            ),
        ),
    )
