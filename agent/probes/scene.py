"""What the probes know of their node: its inventory, its boot, and which address was which GPU.

A GPU that has fallen off the bus can no longer be asked for its UUID, so the last known address of every
GPU is kept, over reboots too, until another GPU is seen there.
"""

import msgspec

from vocab.events import Mig
from vocab.observations import GpuIdentity, GpuSample, NodeSeen
from vocab.pci import pci_address

MOST_ADDRESSES = 256  # a node has a dozen or two; more are made up by whoever wrote the line
BOOT_GRACE_S = 300.0  # drivers and fabric managers of an 8-GPU board need minutes after a boot


class Place(msgspec.Struct, frozen=True):
    """Which GPU is meant: its UUID (None: unknown), and whether that comes from an older inventory."""

    gpu: str | None
    cached: bool = False


class Scene(msgspec.Struct):
    """The node as last seen. Mutable memory of the judge; probes only read it, but for ``absent``."""

    node: str
    boot_id: str | None = None
    boot_at: float | None = None
    earlier: str | None = None  # the boot before this one, if it was seen
    driver: str | None = None
    library: str | None = None
    mismatched: bool = False  # the driver's library says that it is of another build than the module
    booting: bool = False
    inventoried: bool = False
    period_s: float = 1.0
    gpus: dict[str, GpuIdentity] = {}  # by UUID, the current inventory
    addresses: dict[str, str] = {}  # PCI address -> UUID, last known
    absent: set[str] = set()  # GPUs that fail their presence check

    def see(self, seen: NodeSeen) -> bool:
        """Take an inventory in; True if it belongs to another boot than the last."""
        rebooted = self.boot_id is not None and seen.boot_id != self.boot_id
        self.earlier = self.boot_id if rebooted else self.earlier
        self.boot_id, self.boot_at, self.booting = seen.boot_id, seen.boot_at, seen.booting
        self.driver, self.library, self.inventoried = seen.driver, seen.library, True
        self.period_s = seen.period_s or self.period_s
        self.gpus = {gpu.uuid: _with_plain_address(gpu) for gpu in seen.gpus}
        for gpu in self.gpus.values():
            self.learn(gpu.pci, gpu.uuid)
        return rebooted

    def learn(self, pci: str, gpu: str) -> None:
        """From now on ``pci`` is where ``gpu`` is; it is nowhere else."""
        if self.addresses.get(pci) == gpu:
            return
        for address in [old for old, uuid in self.addresses.items() if uuid == gpu]:
            del self.addresses[address]
        self.addresses[pci] = gpu
        if len(self.addresses) > MOST_ADDRESSES:
            self.addresses.pop(next((old for old, uuid in self.addresses.items() if uuid not in self.gpus), pci))

    def place(self, pci: str | None) -> Place:
        """The GPU at an address; ``cached`` if it can no longer be asked who it is."""
        found = self.addresses.get(pci or "")
        if found is not None:
            return Place(found, cached=found not in self.gpus or found in self.absent)
        return Place(None)

    @property
    def only(self) -> str | None:
        """The one GPU that a node has and ever had at any address: what names none can be of no other."""
        known = {*self.gpus, *self.addresses.values()}
        return next(iter(known)) if self.inventoried and len(known) == 1 else None

    def instance(self, gpu: str | None, printed: Mig | None) -> Mig | None:
        """The MIG instance that a line names; one that the GPU's inventory does not list belongs to the whole GPU."""
        known = self.gpus.get(gpu or "")
        if printed is None or known is None:
            return printed
        found = any(slice_.get("gi") == printed.gi for slice_ in known.mig)
        return printed if found else None

    def address(self, gpu: str | None) -> str | None:
        """Where a GPU is, or was last."""
        known = self.gpus.get(gpu or "")
        return known.pci if known else next((pci for pci, uuid in self.addresses.items() if uuid == gpu), None)

    def sampled(self, sample: GpuSample) -> str | None:
        """The UUID that a sample is about."""
        return sample.gpu or self.named(gpu=None, pci=sample.pci, index=sample.index)

    def named(self, *, gpu: str | None, pci: str | None, index: int | None) -> str | None:
        """The UUID of the GPU that is named in one of these ways; an empty name names none."""
        if gpu:
            return gpu
        if pci is not None:
            return self.place(pci_address(pci) or pci).gpu
        return next((known.uuid for known in self.gpus.values() if known.index == index), None)

    def starting(self, now: float) -> bool:
        """Whether the node is still coming up, so that missing things mean nothing yet."""
        return self.booting or (self.boot_at is not None and now < self.boot_at + BOOT_GRACE_S)


def _with_plain_address(gpu: GpuIdentity) -> GpuIdentity:
    """The address in the one spelling, however the driver's tools wrote it."""
    plain = pci_address(gpu.pci) or gpu.pci
    return gpu if plain == gpu.pci else msgspec.structs.replace(gpu, pci=plain)
