"""What /metrics shows of the GPUs, from what is known in memory: a scrape never waits for a driver.

A reading that is missing or older than a few periods has no series. Xid counters of every critical code stand at 0
from the start, so that the first increase is seen as one.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from agent.latest import Latest
from agent.series import Family, Labels
from vocab.activity import activity
from vocab.catalogue.codes import XIDS
from vocab.events import Severity
from vocab.metrics.agent import FIRMWARE, FULL, GPU, INSTANCE, LINK, READINGS
from vocab.metrics.dcgm import DCGM, XID
from vocab.observations import GpuIdentity, GpuSample

CRITICAL_XIDS = tuple(str(number) for number, row in XIDS.items() if row.severity is Severity.CRITICAL)
_ROWS = {row.name: row for row in GPU}
Samples = Mapping[str, GpuSample | None]


class Standing:
    """What the agent and the controller have decided, and which Xids were counted: of each GPU."""

    def __init__(self) -> None:
        self.fenced: frozenset[str] = frozenset()
        self.held: Mapping[str, int] = {}
        self.xids: dict[str, dict[str, int]] = {}
        self.last_xid: dict[str, int] = {}


def families(latest: Latest, standing: Standing, now: float) -> Iterator[Family]:
    """Of all GPUs: the series that are there by default."""
    seen = latest.seen
    gpus = seen.gpus if seen else ()
    samples = {gpu.uuid: latest.fresh(gpu.uuid, now) for gpu in gpus}
    for name, row in READINGS.items():
        yield Family(row, _figures(samples, name))
    node, virtual = (seen.node if seen else None) or "", "true" if seen and seen.virtual else "false"
    yield _of("corral_gpu_info", {(g.uuid, str(g.index), g.name or "", g.pci, node, virtual): 1.0 for g in gpus})
    yield _of("corral_gpu_up", {(gpu,): float(_good(sample)) for gpu, sample in samples.items()})
    reads: dict[Labels, float] = {(gpu,): view.good_at for gpu, view in latest.gpus.items() if view.good_at is not None}
    yield _of("corral_gpu_last_read_timestamp_seconds", reads)
    yield from _activities(samples)
    yield _of("corral_gpu_fenced", {(gpu,): float(gpu in standing.fenced) for gpu in samples})
    yield _of("corral_gpu_held", {(gpu,): float(standing.held.get(gpu, 0)) for gpu in samples})
    linked = {gpu: sample for gpu, sample in samples.items() if sample and sample.links}
    told = {gpu: s for gpu, s in linked.items() if any(link.state is not None for link in s.links.values())}
    yield _of("corral_gpu_nvlinks_down", {(gpu,): _down(sample) for gpu, sample in told.items()})
    yield from _link_errors(linked)
    yield from _xids(standing, tuple(samples))


def full(latest: Latest, now: float) -> Iterator[Family]:
    """What is shown on demand only: rare readings, firmware, each link, each MIG instance."""
    seen = latest.seen
    gpus = seen.gpus if seen else ()
    samples = {gpu.uuid: latest.fresh(gpu.uuid, now) for gpu in gpus}
    for name, row in FULL.items():
        yield Family(row, _figures(samples, name))
    told: dict[Labels, float] = {
        (g.uuid, g.vbios or "", g.inforom or "", g.gsp or "", (seen.cuda if seen else None) or ""): 1.0 for g in gpus
    }
    yield Family(FIRMWARE, told)
    for name, row in LINK.items():
        links: dict[Labels, float] = {
            (gpu, number): float(value)
            for gpu, sample in samples.items()
            for number, link in (sample.links.items() if sample else ())
            if (value := getattr(link, name)) is not None
        }
        yield Family(row, links)
    for name, row in INSTANCE.items():
        slices: dict[Labels, float] = {
            (gpu, *number.split("/")): float(value)
            for gpu, sample in samples.items()
            for number, readings in (sample.instances.items() if sample else ())
            if (value := getattr(readings, name)) is not None
        }
        yield Family(row, slices)


def dcgm(latest: Latest, standing: Standing, hostname: str, now: float) -> Iterator[Family]:
    """The names and labels of NVIDIA's dcgm-exporter, for boards that were built on them."""
    seen = latest.seen
    gpus = seen.gpus if seen else ()
    driver = (seen.driver if seen else None) or ""
    labels = {gpu.uuid: _dcgm_labels(gpu, hostname, driver) for gpu in gpus}
    samples = {gpu: latest.fresh(gpu, now) for gpu in labels}
    for row, figure in DCGM:
        found = {
            labels[gpu]: figure(s.readings) for gpu, s in samples.items() if s is not None and s.readings is not None
        }
        yield Family(row, {key: float(value) for key, value in found.items() if value is not None})
    yield Family(XID, {labels[gpu]: float(standing.last_xid.get(gpu, 0)) for gpu in labels})


def _dcgm_labels(gpu: GpuIdentity, hostname: str, driver: str) -> tuple[str, ...]:
    """In the order of the rows: gpu, UUID, pci_bus_id, device, modelName, Hostname, DCGM_FI_DRIVER_VERSION."""
    bus = f"0000{gpu.pci.upper()}.0"
    return (str(gpu.index), gpu.uuid, bus, f"nvidia{gpu.index}", gpu.name or "", hostname, driver)


def _of(name: str, values: Mapping[Labels, float]) -> Family:
    return Family(_ROWS[name], values)


def _figures(samples: Samples, name: str) -> dict[Labels, float]:
    found: dict[str, Any] = {g: getattr(s.readings, name) for g, s in samples.items() if s and s.readings is not None}
    return {(gpu,): float(value) for gpu, value in found.items() if value is not None}


def _good(sample: GpuSample | None) -> bool:
    return sample is not None and sample.error is None and sample.readings is not None


def _activities(samples: Samples) -> Iterator[Family]:
    """What each GPU does, as far as its counters say."""
    found = {gpu: activity(sample.readings) if sample else None for gpu, sample in samples.items()}
    known = {gpu: doing for gpu, doing in found.items() if doing is not None}
    yield _of("corral_gpu_activity", {(gpu, one.doing, one.by): 1.0 for gpu, one in known.items()})
    yield _of("corral_gpu_activity_ratio", {(gpu,): one.share for gpu, one in known.items()})


def _down(sample: GpuSample) -> float:
    return float(sum(link.state == 0 for link in sample.links.values()))


def _link_errors(linked: Mapping[str, GpuSample]) -> Iterator[Family]:
    """Errors of all links of a GPU, and of its worst one; nothing where no link counts any."""
    sums: dict[str, list[int]] = {}
    for gpu, sample in linked.items():
        counters = [(link.crc_errors, link.replays, link.recoveries) for link in sample.links.values()]
        known = [[count for count in of_link if count is not None] for of_link in counters]
        if any(known):
            sums[gpu] = [sum(of_link) for of_link in known]
    yield _of("corral_gpu_nvlink_errors_total", {(gpu,): float(sum(errors)) for gpu, errors in sums.items()})
    yield _of("corral_gpu_nvlink_errors_worst", {(gpu,): float(max(errors)) for gpu, errors in sums.items()})


def _xids(standing: Standing, gpus: tuple[str, ...]) -> Iterator[Family]:
    known = standing.xids
    yield _of("corral_gpu_xids_total", {(gpu,): float(sum(known.get(gpu, {}).values())) for gpu in gpus})
    by_code: dict[Labels, float] = {
        (gpu, number): float(count)
        for gpu in gpus
        for number, count in (dict.fromkeys(CRITICAL_XIDS, 0) | known.get(gpu, {})).items()
    }
    yield _of("corral_gpu_xid_errors_total", by_code)
