"""MIG: the instances of one GPU, and the figures that each has of its own.

Instances are found through their device handles, which needs no privilege (nvmlDeviceGetGpuInstances does).
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller, text
from agent.sources.nvml_errors import LOST
from agent.sources.nvml_gpm import Gpm
from agent.sources.nvml_quick import MEMORY, Values
from vocab.readings import Readings

UNCORRECTED, VOLATILE, SRAM = 1, 0, 7  # the only memory errors that the driver counts by instance


class Instance(msgspec.Struct, frozen=True):
    """One compute instance, by its UUID; ``handle`` is its device."""

    uuid: str
    gi: int
    ci: int
    handle: Any

    @property
    def name(self) -> str:
        """``gi/ci``."""
        return f"{self.gi}/{self.ci}"


def instances(caller: Caller, handle: Any) -> tuple[Instance, ...]:
    """The instances of a GPU as they are now; none where MIG is off or unknown to the board. Raises CallFailed."""
    try:
        if not caller("nvmlDeviceGetMigMode", handle)[0]:
            return ()
        most = caller("nvmlDeviceGetMaxMigDeviceCount", handle)
    except CallFailed as failed:
        if failed.error in LOST:
            raise
        return ()
    return tuple(found for number in range(most) if (found := _instance(caller, handle, number)))


def _instance(caller: Caller, handle: Any, number: int) -> Instance | None:
    try:
        mig = caller("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        gi, ci = caller("nvmlDeviceGetGpuInstanceId", mig), caller("nvmlDeviceGetComputeInstanceId", mig)
        return Instance(text(caller("nvmlDeviceGetUUID", mig)), gi, ci, mig)
    except CallFailed as failed:  # no instance at this place, or it went away between two calls
        if failed.error in LOST:
            raise
        return None


def listed(found: Sequence[Instance]) -> tuple[dict[str, Any], ...]:
    """As the inventory lists them."""
    return tuple({"uuid": one.uuid, "gi": one.gi, "ci": one.ci} for one in found)


class InstanceReader:
    """The figures of one GPU's instances: memory, uncorrectable errors, and how much of each works."""

    def __init__(self) -> None:
        self._gpms: dict[str, Gpm] = {}  # by UUID: an instance made anew under an old number starts anew

    def take(self, caller: Caller, handle: Any, found: Sequence[Instance]) -> dict[str, Readings]:
        """Readings by ``gi/ci``; a figure that an instance does not give is absent."""
        for gone in self._gpms.keys() - {one.uuid for one in found}:
            self._gpms.pop(gone).free(caller)
        return {one.name: Readings(**self._read(caller, handle, one)) for one in found}

    def _read(self, caller: Caller, handle: Any, one: Instance) -> Values:
        values: Values = {}
        with suppress(CallFailed):
            memory = caller("nvmlDeviceGetMemoryInfo", one.handle, caller.api.nvmlMemory_v2)
            values |= dict(zip(MEMORY, (memory.total, memory.used, memory.reserved), strict=True))
        with suppress(CallFailed):
            values["sram_uncorrectable"] = caller(
                "nvmlDeviceGetMemoryErrorCounter", one.handle, UNCORRECTED, VOLATILE, SRAM
            )
        with suppress(CallFailed):
            gpm = self._gpms.setdefault(one.uuid, Gpm(one.gi))
            values |= {name: value for name, value in gpm.take(caller, handle).items() if not name.startswith("pcie")}
        return values
