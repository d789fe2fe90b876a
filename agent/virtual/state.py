"""The virtual node's file, opened: blocks that read and write through, the kernel log ring, NVML events.

Fields are single aligned words, so readers in other processes need no lock; what appends (log, events)
holds a file lock. The file outlives the process that made it, as a node outlives its agent.
"""

import ctypes
import fcntl
import mmap
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from agent.virtual import layout, physics
from agent.virtual.boards import BOARDS, Board, parse_shape
from vocab.clock import Clock, SystemClock
from vocab.errors import InputError

DRIVER = "565.57.01"  # the newest branch whose Xid lines still print pid='<unknown>'
LIBRARY = "12.565.57.01"
CUDA = 12070
DAY_S = 86400.0  # a new virtual node has been up for a day: nothing is judged as part of a boot
XID_EVENT = 0x8  # nvmlEventTypeXidCriticalError

_CONTROL = re.compile(r"[\x00-\x1f\x7f\\]")
_MACHINE_BOOT = Path("/proc/sys/kernel/random/boot_id")


def machine_boot_id() -> str:
    """The boot id of the machine under the virtual node."""
    return _MACHINE_BOOT.read_text().strip()


def _digits(node: str, index: int, what: str, size: int) -> bytes:
    return blake2b(f"{node}/{index}/{what}".encode(), digest_size=size).digest()


def uuid_of(node: str, index: int) -> str:
    """The UUID of a virtual node's GPU: the same for the same name and index, everywhere."""
    return f"GPU-{UUID(bytes=_digits(node, index, 'uuid', 16), version=4)}"


def serial_of(node: str, index: int) -> str:
    """The board serial number, 13 digits as on this board."""
    return f"165{int.from_bytes(_digits(node, index, 'serial', 6), 'big') % 10**10:010d}"


class VirtualState:
    """An open virtual node. Make one with ``create`` or ``open``; ``block`` is the mapped node block.

    ``block`` and ``gpus`` are ctypes structures over the file: assigning a field writes the file.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self.clock = clock
        self._handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        self._map = mmap.mmap(self._handle, layout.SIZE)
        self.block: Any = layout.NodeBlock.from_buffer(self._map)
        self.bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)  # readable once this process has logged

    @classmethod
    def create(
        cls, path: Path, node: str, shape: str = "8xH100", *, clock: Clock | None = None, uptime_s: float = DAY_S
    ) -> "VirtualState":
        """A new, healthy, idle node in a file that appears whole or not at all, and replaces one of that name.

        Raises ConfigError for an unknown shape.
        """
        count, board = parse_shape(shape)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        beside.write_bytes(bytes(layout.SIZE))
        state = cls(beside, clock or SystemClock())
        _furnish(state, node, count, board)
        state.start_boot(uptime_s)
        state.block.magic = layout.MAGIC
        beside.replace(path)
        state.path = path
        return state

    @classmethod
    def open(cls, path: Path, *, clock: Clock | None = None) -> "VirtualState":
        """The node in an existing file. Raises InputError if it is absent or not of this layout."""
        try:
            with path.open("rb") as file:
                head = file.read(layout.NodeBlock.node.offset)
                size = os.fstat(file.fileno()).st_size
        except OSError as error:
            raise InputError(f"{path}: cannot open the virtual node: {error.strerror}") from error
        if head[:8] != layout.MAGIC:
            raise InputError(f"{path}: not the state of a virtual node; remove the file to start a new one")
        version = int.from_bytes(head[8:12], "little")
        if version != layout.VERSION or size != layout.SIZE:
            raise InputError(
                f"{path}: a virtual node of layout {version}, this program needs {layout.VERSION};"
                " remove the file to start a new one"
            )
        return cls(path, clock or SystemClock())

    def close(self) -> None:
        """Let the file go; the node stays in it."""
        del self.block
        with suppress(BufferError):  # somebody still holds a block: the map goes with it
            self._map.close()
        os.close(self._handle)
        os.close(self.bell)

    @property
    def node(self) -> str:
        """The node's name."""
        return str(self.block.node.decode())

    @property
    def boot_id(self) -> str:
        """The boot id of the virtual node; new after each reboot."""
        return str(self.block.boot_id.decode())

    @property
    def boot_at(self) -> float:
        """When it booted, seconds since the epoch."""
        return float(self.block.boot_at)

    @property
    def board(self) -> Board:
        """What its GPUs are."""
        return BOARDS[self.block.board.decode()]

    @property
    def gpus(self) -> list[Any]:
        """The blocks of all GPU slots, removed ones included, in slot order."""
        return [self.block.gpus[index] for index in range(self.block.gpu_count)]

    def gpu(self, index: int) -> Any:
        """The block of one GPU slot. Raises InputError if there is none."""
        if not 0 <= index < self.block.gpu_count:
            raise InputError(f"gpu: {index} is not a GPU of {self.node}; it has 0 to {self.block.gpu_count - 1}")
        return self.block.gpus[index]

    def uptime_s(self) -> float:
        """Seconds since the virtual node booted, as its kernel counts them."""
        return self.clock.monotonic() - float(self.block.boot_monotonic_s)

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the file lock and raise the generation: for every change that is more than one word."""
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        try:
            yield
            self.block.generation += 1
        finally:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def start_boot(self, uptime_s: float = 0.0) -> None:
        """Give the node a new boot id and an empty kernel log with the driver's banner."""
        block = self.block
        block.boot_id = str(uuid4()).encode()
        block.machine_boot_id = machine_boot_id().encode()
        block.boot_at = self.clock.now() - uptime_s
        block.boot_monotonic_s = self.clock.monotonic() - uptime_s
        for slot in block.log:
            slot.stamp = 0
        block.log_next = 0
        driver = block.driver.decode()
        banner = f"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  {driver}  Release Build"
        self.log(banner, level=6, uptime_s=min(uptime_s, 30.0))

    def log(self, text: str, *, level: int = 3, facility: int = 0, uptime_s: float | None = None) -> int:
        """Append one kernel record (the caller holds ``changing``) and return its sequence number.

        The level defaults to 3, an error, as the driver prints Xids; facility 0 is the kernel itself.
        """
        sequence = int(self.block.log_next)
        stamp_us = int((self.uptime_s() if uptime_s is None else uptime_s) * 1e6)
        escaped = _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)  # as /dev/kmsg does
        raw = f"{facility << 3 | level},{sequence},{stamp_us},-;{escaped}".encode()[: layout.LOG_TEXT - 2] + b"\n"
        slot = self.block.log[sequence % layout.LOG_SLOTS]
        slot.stamp = 0  # nobody may take the old record for the new one while both are in the slot
        slot.text = raw
        slot.length = len(raw)
        slot.stamp = sequence + 1
        self.block.log_next = sequence + 1
        os.eventfd_write(self.bell, 1)
        return sequence

    def hush(self) -> None:
        """The bell was heard."""
        with suppress(BlockingIOError):
            os.eventfd_read(self.bell)

    def read_log(self, sequence: int) -> bytes | None:
        """The raw record of this number, or None if it is overwritten or not yet written."""
        slot = self.block.log[sequence % layout.LOG_SLOTS]
        if slot.stamp != sequence + 1:
            return None
        raw = ctypes.string_at(ctypes.addressof(slot) + type(slot).text.offset, slot.length)
        return raw if slot.stamp == sequence + 1 else None

    def push_event(self, index: int, kind: int, value: int) -> None:
        """Tell NVML's event sets (the caller holds ``changing``)."""
        number = int(self.block.event_next)
        slot = self.block.events[number % layout.EVENT_SLOTS]
        slot.stamp = 0
        slot.type, slot.value, slot.gpu = kind, value, index
        slot.stamp = number + 1
        self.block.event_next = number + 1


def _furnish(state: VirtualState, node: str, count: int, board: Board) -> None:
    block = state.block
    block.version, block.size = layout.VERSION, layout.SIZE
    block.node, block.board = node.encode()[:63], board.key.encode()
    block.driver, block.library, block.cuda = DRIVER.encode(), LIBRARY.encode(), CUDA
    block.gpu_count = count
    for index in range(count):
        gpu = block.gpus[index]
        _identify(gpu, node, index, board)
        _set_limits(gpu, board)
        _set_links(gpu, board)
        _rest(gpu, board)


def _identify(gpu: Any, node: str, index: int, board: Board) -> None:
    gpu.uuid, gpu.serial = uuid_of(node, index).encode(), serial_of(node, index).encode()
    gpu.name, gpu.vbios, gpu.part_number = board.name.encode(), board.vbios.encode(), board.part_number.encode()
    gpu.pci_bus = board.pci_buses[index]
    gpu.pci_device_id, gpu.pci_subsystem_id = board.pci_device_id, board.pci_subsystem_id
    gpu.minor = index


def _set_limits(gpu: Any, board: Board) -> None:
    gpu.temperature_max_c = board.temperature_max_c
    gpu.temperature_slowdown_c = board.temperature_slowdown_c
    gpu.temperature_shutdown_c = board.temperature_shutdown_c
    gpu.power_limit_mw = gpu.power_limit_max_mw = round(board.power_limit_w * 1000)
    gpu.power_limit_min_mw = round(board.power_limit_min_w * 1000)
    gpu.sm_max_mhz, gpu.memory_mhz = board.sm_clock_max_mhz, board.memory_clock_mhz
    gpu.memory_total_bytes, gpu.memory_reserved_bytes = board.memory_total_bytes, board.memory_reserved_bytes
    gpu.banks[0] = board.row_remap_banks
    gpu.pcie_generation = gpu.pcie_generation_max = board.pcie_generation
    gpu.pcie_width = gpu.pcie_width_max = board.pcie_width
    gpu.ecc_mode = gpu.ecc_mode_pending = gpu.persistence = 1
    gpu.fabric_state = 3  # completed


def _set_links(gpu: Any, board: Board) -> None:
    gpu.link_count = board.links
    for link in gpu.links[: board.links]:
        link.state, link.version, link.speed_mb_per_s = 1, board.link_version, board.link_speed_mb_per_s


def _rest(gpu: Any, board: Board) -> None:
    vitals = physics.at_rest(board)
    gpu.core_c, gpu.memory_c, gpu.power_exact_w = vitals.core_c, vitals.memory_c, vitals.power_w
    gpu.temperature_c, gpu.memory_temperature_c = int(vitals.core_c), int(vitals.memory_c)
    gpu.power_mw, gpu.sm_mhz = round(vitals.power_w * 1000), vitals.sm_mhz
    gpu.clock_reasons = vitals.clock_reasons
