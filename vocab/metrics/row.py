"""The form of one row of the metric catalogue."""

from enum import StrEnum

import msgspec


class Kind(StrEnum):
    """Prometheus' metric types."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    INFO = "info"


class Metric(msgspec.Struct, frozen=True):
    """One metric: its full exposed name (counters end in ``_total``, info metrics in ``_info``)."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
