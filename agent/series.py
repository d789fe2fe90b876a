"""Series of GPUs as text for Prometheus. A node of eight has some six hundred lines a scrape, so the parts of a line
that stay are made once; the agent's own few metrics go through Prometheus' client library.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec

from vocab.metrics import Kind, Metric

Labels = tuple[str, ...]


class Family(msgspec.Struct, frozen=True):
    """One metric's values, by the values of its labels."""

    row: Metric
    values: Mapping[Labels, float]


@lru_cache(maxsize=1024)
def _head(row: Metric) -> str:
    kind = "counter" if row.kind is Kind.COUNTER else "gauge"  # an info metric is a gauge of 1
    return f"# HELP {row.name} {_escaped(row.help)}\n# TYPE {row.name} {kind}\n"


@lru_cache(maxsize=8192)
def _start(row: Metric, labels: Labels) -> str:
    pairs = ",".join(f'{name}="{_quoted(value)}"' for name, value in zip(row.labels, labels, strict=True))
    return f"{row.name}{{{pairs}}} " if pairs else f"{row.name} "


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def _quoted(text: str) -> str:
    return _escaped(text).replace('"', r"\"")


def text(families: Iterable[Family]) -> bytes:
    """The lines of these families; one without values has none."""
    parts: list[str] = []
    for family in families:
        if family.values:
            parts.append(_head(family.row))
            parts += [f"{_start(family.row, labels)}{value!r}\n" for labels, value in family.values.items()]
    return "".join(parts).encode()
