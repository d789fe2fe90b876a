"""GPM: how much of a GPU, or of one of its MIG instances, really works, as means between two samples (Hopper on)."""

from collections.abc import Callable
from ctypes import byref
from typing import Any

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller
from agent.sources.nvml_quick import Values
from agent.sources.units import mebi, percent

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
    """One GPU's pair of samples, or that of a GPU ``instance``. The first read gives nothing: there is no interval yet.

    Only the entries that are asked for are touched: the array behind them has grown from header to header
    under one and the same version number.
    """

    names = NAMES

    def __init__(self, instance: int | None = None) -> None:
        self._instance = instance
        self._before: Any = None
        self._after: Any = None
        self._request: Any = None
        self._metrics: tuple[Any, ...] = ()

    def take(self, caller: Caller, handle: Any) -> Values:
        """The means since the read before; ``handle`` is the whole GPU's. Raises CallFailed (NOT_SUPPORTED: no GPM)."""
        if self._request is None:
            self._prepare(caller, handle)
            return {}
        self._sample(caller, handle, self._after)
        self._request.sample1, self._request.sample2 = self._before, self._after
        caller.raw("nvmlGpmMetricsGet", byref(self._request))
        self._before, self._after = self._after, self._before
        return dict(self._values())

    def forget(self) -> None:
        """After an outage the older sample is worth nothing."""
        self._request = None

    def free(self, caller: Caller) -> None:
        """Give the samples back: the instance is gone."""
        for sample in (self._before, self._after):
            if sample is not None:
                caller("nvmlGpmSampleFree", sample)
        self._before = self._after = self._request = None

    def _sample(self, caller: Caller, handle: Any, sample: Any) -> None:
        if self._instance is None:
            caller.raw("nvmlGpmSampleGet", handle, sample)
        else:
            caller.raw("nvmlGpmMigSampleGet", handle, self._instance, sample)

    def _prepare(self, caller: Caller, handle: Any) -> None:
        if not caller("nvmlGpmQueryDeviceSupport", handle).isSupportedDevice:
            raise CallFailed("nvmlGpmQueryDeviceSupport", "NOT_SUPPORTED")
        if self._before is None:
            self._before, self._after = caller("nvmlGpmSampleAlloc"), caller("nvmlGpmSampleAlloc")
        self._sample(caller, handle, self._before)
        request = caller.api.c_nvmlGpmMetricsGet_t()
        request.version, request.numMetrics = caller.api.NVML_GPM_METRICS_GET_VERSION, len(METRICS)
        self._metrics = tuple(request.metrics[at] for at in range(len(METRICS)))  # views into the request
        for metric, number in zip(self._metrics, METRICS, strict=True):
            metric.metricId = number
        self._request = request

    def _values(self) -> list[tuple[str, float]]:
        found = []
        for metric, (name, convert) in zip(self._metrics, METRICS.values(), strict=True):
            value = metric.value
            if metric.nvmlReturn == 0 and value == value:  # NaN: no value this time
                found.append((name, convert(value)))
        return found
