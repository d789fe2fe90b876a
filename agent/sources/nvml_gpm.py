"""GPM: how much of a GPU really works, as means between two samples (Hopper and newer)."""

from collections.abc import Callable
from typing import Any

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller
from agent.sources.nvml_table import Values, percent


def mebi(value: float) -> float:
    """MiB/s."""
    return value * 2**20


# metric id of nvml.h -> (reading, how it becomes base units)
METRICS: dict[int, tuple[str, Callable[[float], float]]] = {
    1: ("graphics_active_ratio", percent),
    2: ("sm_active_ratio", percent),
    3: ("sm_occupancy_ratio", percent),
    5: ("tensor_active_ratio", percent),
    10: ("dram_active_ratio", percent),
    20: ("pcie_tx_bytes_per_s", mebi),
    21: ("pcie_rx_bytes_per_s", mebi),
}
NAMES = tuple(name for name, _ in METRICS.values())


class Gpm:
    """One GPU's pair of samples. The first read gives nothing: there is no interval yet.

    Only the entries that are asked for are touched: the array behind them has grown from header to header
    under one and the same version number.
    """

    def __init__(self) -> None:
        self._before: Any = None
        self._after: Any = None
        self._request: Any = None

    def take(self, caller: Caller, handle: Any) -> Values:
        """The means since the read before. Raises CallFailed (NOT_SUPPORTED: this GPU has no GPM)."""
        if self._request is None:
            self._prepare(caller, handle)
            return {}
        caller("nvmlGpmSampleGet", handle, self._after)
        self._request.sample1, self._request.sample2 = self._before, self._after
        caller("nvmlGpmMetricsGet", self._request)
        self._before, self._after = self._after, self._before
        return dict(self._values())

    def forget(self) -> None:
        """After an outage the older sample is worth nothing."""
        self._request = None

    def _prepare(self, caller: Caller, handle: Any) -> None:
        if not caller("nvmlGpmQueryDeviceSupport", handle).isSupportedDevice:
            raise CallFailed("nvmlGpmQueryDeviceSupport", "NOT_SUPPORTED")
        if self._before is None:
            self._before, self._after = caller("nvmlGpmSampleAlloc"), caller("nvmlGpmSampleAlloc")
        caller("nvmlGpmSampleGet", handle, self._before)
        request = caller.api.c_nvmlGpmMetricsGet_t()
        request.version, request.numMetrics = caller.api.NVML_GPM_METRICS_GET_VERSION, len(METRICS)
        for at, metric in enumerate(METRICS):
            request.metrics[at].metricId = metric
        self._request = request

    def _values(self) -> list[tuple[str, float]]:
        found = []
        for at, (name, convert) in enumerate(METRICS.values()):
            metric = self._request.metrics[at]
            if metric.nvmlReturn == 0 and metric.value == metric.value:  # NaN: no value this time
                found.append((name, convert(metric.value)))
        return found
