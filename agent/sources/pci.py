"""NVIDIA's devices on the PCI bus, from sysfs: what should be there, whatever the driver lists.

``vendor`` and ``class`` are kept by the kernel since it found the device; reading them asks no hardware. A device
that fell off the bus stays here until it is removed or the node boots, which is what makes it *missing*.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from vocab.observations import AnyObservation, NodeSeen, PciDevice
from vocab.pci import pci_address

NVIDIA = "0x10de"
DISPLAY = ("0300", "0302")  # VGA and 3D controllers
BRIDGE = "0680"  # NVSwitches are bridges of no other kind


def nvidia_devices(sys: Path = Path("/sys")) -> tuple[PciDevice, ...]:
    """GPUs and NVSwitches by address; empty where there is no such bus."""
    try:
        entries = sorted((sys / "bus/pci/devices").iterdir())
    except OSError:
        return ()
    return tuple(found for entry in entries if (found := _device(entry)) is not None)


def _device(entry: Path) -> PciDevice | None:
    try:
        vendor, kind = (entry / "vendor").read_text().strip(), (entry / "class").read_text().strip()
        address = pci_address(entry.name)
    except OSError:  # it has just been removed
        return None
    kind = kind.removeprefix("0x")[:4]
    if vendor != NVIDIA or address is None or not kind.startswith((*DISPLAY, BRIDGE)):
        return None
    driver = entry / "driver"
    return PciDevice(pci=address, class_=kind, driver=driver.resolve().name if driver.is_symlink() else None)


def on_bus(sys: Path = Path("/sys")) -> Callable[[AnyObservation], AnyObservation]:
    """Completes inventories: what the bus shows stands beside what the driver lists."""

    def complete(observation: AnyObservation) -> AnyObservation:
        if not isinstance(observation, NodeSeen):
            return observation
        return msgspec.structs.replace(observation, pci_devices=nvidia_devices(sys))

    return complete
