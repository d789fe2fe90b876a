"""PCIe traffic where there is no GPM: rates from two reads of the driver's byte counters, which may wrap."""

from typing import Any

from agent.sources.nvml_call import Caller
from agent.sources.nvml_fields import FieldBatch
from agent.sources.nvml_quick import Values
from agent.sources.nvml_table import TRAFFIC_FIELDS

RATES = {"pcie_tx_bytes": "pcie_tx_bytes_per_s", "pcie_rx_bytes": "pcie_rx_bytes_per_s"}
LEAST_S = 0.5


class Traffic:
    """One GPU's counters as read before."""

    def __init__(self) -> None:
        self._batch: FieldBatch | None = None
        self._before: dict[str, int] = {}
        self._at = 0.0
        self._never = False

    def rates(self, caller: Caller, handle: Any, now: float) -> Values:
        """Bytes a second since the read before; nothing the first time, after a wrap, or without counters."""
        if self._never:
            return {}
        self._batch = self._batch or FieldBatch(caller.api, TRAFFIC_FIELDS)
        found = {row.name: value for row, error, value in self._batch.take(caller, handle) if error is None}
        self._never = not found and not self._before
        before, passed = self._before, now - self._at
        self._before, self._at = found, now
        if passed < LEAST_S:
            return {}
        return {
            RATES[name]: (value - before[name]) / passed
            for name, value in found.items()
            if name in before and value >= before[name]
        }
