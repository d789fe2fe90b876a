"""Who a GPU is, and which driver runs: what is asked when the inventory is taken."""

from ctypes import byref
from pathlib import Path
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller, text
from agent.sources.nvml_mig import instances, listed
from vocab.observations import GpuIdentity

PCI_DEVICES = Path("/sys/bus/pci/devices")


class Versions(msgspec.Struct, frozen=True):
    """Of the driver, of NVML's library, and the newest CUDA that the driver runs (``12.7``)."""

    driver: str | None = None
    library: str | None = None
    cuda: str | None = None


class Found(msgspec.Struct, frozen=True):
    """A GPU that could be looked up."""

    identity: GpuIdentity
    handle: Any


def versions(caller: Caller) -> Versions:
    """The versions of this node. Raises CallFailed if not even the driver's is known."""
    driver, library = text(caller("nvmlSystemGetDriverVersion")), text(caller("nvmlSystemGetNVMLVersion"))
    try:
        cuda = int(caller("nvmlSystemGetCudaDriverVersion"))
    except CallFailed:
        return Versions(driver, library)
    return Versions(driver, library, f"{cuda // 1000}.{cuda % 1000 // 10}")


def identify(caller: Caller, index: int) -> Found:
    """The GPU of this index. Raises CallFailed."""
    handle = caller("nvmlDeviceGetHandleByIndex", index)
    pci = caller("nvmlDeviceGetPciInfo", handle)
    identity = GpuIdentity(
        uuid=text(caller("nvmlDeviceGetUUID", handle)),
        index=index,
        pci=f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}",
        serial=_word(caller, "nvmlDeviceGetSerial", handle),  # consumer boards have none
        name=text(caller("nvmlDeviceGetName", handle)),
        mig=listed(instances(caller, handle)),
        vbios=_word(caller, "nvmlDeviceGetVbiosVersion", handle),
        inforom=_word(caller, "nvmlDeviceGetInforomImageVersion", handle),
        gsp=_word(caller, "nvmlDeviceGetGspFirmwareVersion", handle),
        numa=_numa(f"{pci.domain:04x}:{pci.bus:02x}:{pci.device:02x}"),
        fabric=_fabric(caller, handle),
    )
    return Found(identity, handle)


def _numa(pci: str, devices: Path = PCI_DEVICES) -> int | None:
    """The NUMA node as the kernel has it; it says -1 where there is but one."""
    try:
        number = int((devices / f"{pci}.0" / "numa_node").read_text())
    except (OSError, ValueError):
        return None
    return number if number >= 0 else None


def _fabric(caller: Caller, handle: Any) -> str | None:
    """Cluster and clique, once its registration is complete; on a node whose switches are its own alone it has none."""
    found = caller.api.c_nvmlGpuFabricInfo_v2_t()
    try:
        caller("nvmlDeviceGetGpuFabricInfoV", handle, byref(found))
    except CallFailed:
        return None
    cluster = bytes(found.clusterUuid)
    if found.state != caller.api.NVML_GPU_FABRIC_STATE_COMPLETED or not any(cluster):
        return None
    return f"{cluster.hex()}/{found.cliqueId}"


def _word(caller: Caller, call: str, handle: Any) -> str | None:
    try:
        return text(caller(call, handle)) or None
    except CallFailed:
        return None
