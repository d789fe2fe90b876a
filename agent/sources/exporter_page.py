"""A page of dcgm-exporter, read: by GPU the numbers of its fields, and of its MIG instances. Pure.

A field that the exporter cannot read has no line; some releases print DCGM's blanks in its place, which are four
values at the end of each number type. A line that is none (``N/A`` for a number) costs only itself.
"""

import math
from collections.abc import Iterable, Iterator, Mapping

import msgspec
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from agent.probes.sane import BLANKS
from agent.sources.exporter_names import DRIVER, INDEX, INSTANCE, MODEL, NUMBERS, OF_INSTANCES, PCI, UUID
from vocab.pci import pci_address

Values = dict[int, float]  # by field


class ExportedGpu(msgspec.Struct):
    """One GPU of the page. ``errors``: the blank that stands for a field; ``instances``: by GPU instance id."""

    uuid: str
    index: int | None = None
    pci: str | None = None
    name: str | None = None
    values: Values = {}
    errors: dict[int, str] = {}
    instances: dict[int, Values] = {}


class Exported(msgspec.Struct):
    """The page: its GPUs by UUID, the driver, and how many lines could not be read."""

    gpus: dict[str, ExportedGpu] = {}
    driver: str | None = None
    unread: int = 0


def read_page(text: str) -> Exported:
    """The page as it stands."""
    lines = [line for line in text.splitlines() if line.partition("{")[0].strip() in NUMBERS]
    page = Exported()
    samples, page.unread = _samples(lines)
    for sample in samples:
        uuid = _label(sample.labels, UUID)
        if uuid is None or not uuid.startswith("GPU-"):
            continue  # before release 1.5 a line could name the index alone
        page.driver = page.driver or _label(sample.labels, DRIVER)
        gpu = page.gpus.get(uuid) or page.gpus.setdefault(uuid, _gpu(uuid, sample.labels))
        _take(gpu, NUMBERS[sample.name], sample)
    return page


def _samples(lines: list[str]) -> tuple[list[Sample], int]:
    """All samples; where one line is none, line by line without it."""
    try:
        return list(_parsed(lines)), 0
    except ValueError:
        found: list[Sample] = []
        unread = 0
        for line in lines:
            try:
                found += _parsed([line])
            except ValueError:
                unread += 1
        return found, unread


def _parsed(lines: Iterable[str]) -> Iterator[Sample]:
    for family in text_string_to_metric_families("\n".join(lines) + "\n"):
        yield from family.samples


def _gpu(uuid: str, labels: Mapping[str, str]) -> ExportedGpu:
    index, pci = _label(labels, INDEX), _label(labels, PCI)
    return ExportedGpu(
        uuid=uuid,
        index=int(index) if index and index.isdecimal() else None,
        pci=pci_address(pci) if pci else None,
        name=_label(labels, MODEL),
    )


def _take(gpu: ExportedGpu, field: int, sample: Sample) -> None:
    """Figures of the whole GPU stand once for each of its instances; they are the same."""
    blank = "BLANK" if not math.isfinite(sample.value) else BLANKS.get(sample.value)
    instance = _label(sample.labels, INSTANCE)
    if blank is not None:
        gpu.errors[field] = blank
    elif instance is None or field not in OF_INSTANCES:
        gpu.values[field] = sample.value
    elif instance.isdecimal():
        gpu.instances.setdefault(int(instance), {})[field] = sample.value


def _label(labels: Mapping[str, str], spellings: Iterable[str]) -> str | None:
    return next((labels[name] for name in spellings if labels.get(name)), None)
