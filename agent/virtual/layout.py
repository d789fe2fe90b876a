"""The one table of the virtual node's file, and the ctypes blocks made from it.

Units are those of NVML itself (mW, mJ, MHz, KiB, percent), so that the C face hands them on as they are.
Fields lie in table order with natural alignment; both sides check sizes and offsets. Anybody who changes
the table raises VERSION and renews the C header that agent/virtual/header.py makes of it.
"""

import ctypes
from typing import Any

import msgspec

MAGIC = b"CORRALVN"
VERSION = 3
MAX_GPUS = 8
MAX_LINKS = 18
MAX_PROCESSES = 16
MAX_INSTANCES = 7
LOG_SLOTS = 512  # records that the kernel log ring keeps
LOG_TEXT = 1008  # bytes of one record, prefix and newline included
EVENT_SLOTS = 256


class Field(msgspec.Struct, frozen=True):
    """One field: its kind (a scalar, ``char`` or the name of a block above) and how many of it."""

    name: str
    kind: str
    doc: str
    count: int = 1


class Block(msgspec.Struct, frozen=True):
    """A C struct of the file."""

    name: str
    fields: tuple[Field, ...]


_F = Field

LINK = Block(
    "link",
    (
        _F("state", "u32", "1 up, 0 down"),
        _F("version", "u32", "NVLink generation"),
        _F("speed_mb_per_s", "u32", "each way"),
        _F("ber", "u32", "NVLink 5: effective bit error rate in the driver's form; 0: none was measured"),
        _F("crc_errors", "u64", "since driver load or reset"),
        _F("replays", "u64", "since driver load or reset"),
        _F("recoveries", "u64", "since driver load or reset"),
    ),
)

PROCESS = Block(
    "process",
    (
        _F("pid", "u32", "of the host"),
        _F("spare", "u32", "keeps used_bytes aligned"),
        _F("used_bytes", "u64", "device memory"),
    ),
)

INSTANCE = Block(
    "instance",
    (
        _F("uuid", "char", "MIG-xxxxxxxx-...", 48),
        _F("gi", "u32", "number of the GPU instance"),
        _F("ci", "u32", "number of the compute instance in it"),
        _F("memory_total_bytes", "u64", ""),
        _F("memory_used_bytes", "u64", ""),
        _F("sram_uncorrected", "u64", "volatile"),
        _F("sm_active_percent", "f64", "GPM: of its own SMs"),
    ),
)

GPU = Block(
    "gpu",
    (
        _F("uuid", "char", "GPU-xxxxxxxx-...", 48),
        _F("serial", "char", "board serial number", 32),
        _F("name", "char", "product name", 64),
        _F("vbios", "char", "version", 32),
        _F("part_number", "char", "board part number", 32),
        _F("pci_domain", "u32", ""),
        _F("pci_bus", "u32", ""),
        _F("pci_device", "u32", ""),
        _F("pci_device_id", "u32", "device << 16 | vendor"),
        _F("pci_subsystem_id", "u32", ""),
        _F("minor", "u32", "N of /dev/nvidiaN"),
        _F("lost", "u32", "0, or the NVML code that every call on this GPU returns (15 GPU_IS_LOST)"),
        _F("removed", "u32", "1: the device count shrinks by this GPU"),
        _F("hang", "u32", "1: every call on this GPU blocks until this is 0"),
        _F("corrupt", "u32", "1: it computes wrong results, and nothing reports it"),
        _F("spare", "u32", "keeps heat_c aligned"),
        _F("power_brake", "u32", "1: the chassis asserts the power-brake signal"),
        _F("introduced", "u32", "1: the driver has printed its UUID and serial in this boot"),
        _F("instance_count", "u32", "MIG instances"),
        _F("bad_field", "u32", "NVML field that fails by itself; 0: none"),
        _F("bad_code", "u32", "the NVML code that it fails with"),
        _F("heat_c", "f64", "not 0: cooling has failed and the core sits at this temperature"),
        _F("calls", "u64", "NVML calls made on this GPU"),
        # physics: what moves between two steps, finer than NVML shows it
        _F("core_c", "f64", "core temperature"),
        _F("memory_c", "f64", "memory temperature"),
        _F("power_exact_w", "f64", "board power"),
        _F("energy_exact_j", "f64", "since driver load"),
        # readings
        _F("temperature_c", "u32", ""),
        _F("memory_temperature_c", "u32", ""),
        _F("temperature_max_c", "u32", "highest normal operating temperature"),
        _F("temperature_slowdown_c", "u32", ""),
        _F("temperature_shutdown_c", "u32", ""),
        _F("power_mw", "u32", "mean of the last second"),
        _F("power_limit_mw", "u32", "enforced"),
        _F("power_limit_min_mw", "u32", ""),
        _F("power_limit_max_mw", "u32", ""),
        _F("sm_mhz", "u32", ""),
        _F("sm_max_mhz", "u32", ""),
        _F("memory_mhz", "u32", ""),
        _F("utilization_percent", "u32", "time in which a kernel ran"),
        _F("memory_utilization_percent", "u32", "time in which memory was read or written"),
        _F("performance_state", "u32", "0 is the fastest"),
        _F("persistence", "u32", ""),
        _F("clock_reasons", "u64", "mask of clock event reasons"),
        _F("energy_mj", "u64", "since driver load"),
        _F("power_violation_ns", "u64", "time below the wanted clocks for the power limit"),
        _F("thermal_violation_ns", "u64", "time below the wanted clocks for heat"),
        _F("sw_thermal_ns", "u64", "by the driver"),
        _F("hw_thermal_ns", "u64", "by the hardware"),
        _F("power_brake_ns", "u64", "by the power-brake signal"),
        _F("graphics_percent", "f64", "GPM metrics: mean since the step before"),
        _F("sm_active_percent", "f64", ""),
        _F("sm_occupancy_percent", "f64", ""),
        _F("tensor_percent", "f64", ""),
        _F("dram_percent", "f64", ""),
        _F("pcie_tx_kb_per_s", "u32", "KiB each second"),
        _F("pcie_rx_kb_per_s", "u32", "KiB each second"),
        _F("memory_total_bytes", "u64", ""),
        _F("memory_reserved_bytes", "u64", "driver and firmware"),
        _F("memory_used_bytes", "u64", "without the reserved part"),
        _F("ecc_mode", "u32", ""),
        _F("ecc_mode_pending", "u32", "after the next reset"),
        _F("ecc_dram_corrected", "u64", "volatile: since driver load or reset"),
        _F("ecc_sram_corrected", "u64", "volatile"),
        _F("ecc_dram_uncorrected", "u64", "volatile"),
        _F("ecc_sram_uncorrected", "u64", "volatile"),
        _F("ecc_dram_corrected_lifetime", "u64", "kept in the InfoROM"),
        _F("ecc_sram_corrected_lifetime", "u64", ""),
        _F("ecc_dram_uncorrected_lifetime", "u64", ""),
        _F("ecc_sram_uncorrected_lifetime", "u64", ""),
        _F("sram_threshold_exceeded", "u32", "1: replace the board"),
        _F("remap_correctable", "u32", "rows"),
        _F("remap_uncorrectable", "u32", "rows"),
        _F("remap_pending", "u32", "1: a reset activates the remap"),
        _F("remap_failed", "u32", "1: a row could not be remapped"),
        _F("banks", "u32", "by spare rows left: all, high, partial, low, none", 5),
        _F("pcie_generation", "u32", ""),
        _F("pcie_generation_max", "u32", ""),
        _F("pcie_width", "u32", "lanes"),
        _F("pcie_width_max", "u32", "lanes"),
        _F("pcie_replays", "u32", "since driver load"),
        _F("fabric_state", "u32", "3 completed"),
        _F("fabric_status", "u32", "NVML return code of the registration"),
        _F("fabric_health_mask", "u32", "two bits a flag"),
        _F("recovery_action", "u32", "0 none, 1 reset, 2 reboot, ..."),
        _F("mig_mode", "u32", ""),
        _F("link_count", "u32", ""),
        _F("process_count", "u32", ""),
        _F("nvlink_tx_kib", "u64", "payload of all links since driver load"),
        _F("nvlink_rx_kib", "u64", ""),
        _F("links", "link", "", MAX_LINKS),
        _F("processes", "process", "", MAX_PROCESSES),
        _F("instances", "instance", "", MAX_INSTANCES),
    ),
)

RECORD = Block(
    "record",
    (
        _F("stamp", "u64", "sequence number + 1; 0 while empty or being written"),
        _F("length", "u32", "bytes of text"),
        _F("spare", "u32", ""),
        _F("text", "char", "prio,seq,usec,flags;text and a newline, as /dev/kmsg gives it", LOG_TEXT),
    ),
)

EVENT = Block(
    "event",
    (
        _F("stamp", "u64", "event number + 1; 0 while empty or being written"),
        _F("type", "u64", "NVML event type bit"),
        _F("value", "u64", "the Xid, if that is the type"),
        _F("gpu", "u32", "slot of the GPU"),
        _F("spare", "u32", ""),
    ),
)

NODE = Block(
    "node",
    (
        _F("magic", "char", "CORRALVN", 8),
        _F("version", "u32", "of this table"),
        _F("size", "u32", "bytes of the file"),
        _F("node", "char", "the node's name", 64),
        _F("board", "char", "key of the board table", 32),
        _F("driver", "char", "version", 32),
        _F("library", "char", "version of NVML", 32),
        _F("cuda", "u32", "1000 * major + 10 * minor"),
        _F("gpu_count", "u32", "slots in use, removed GPUs included"),
        _F("boot_id", "char", "new at each boot of the virtual node", 40),
        _F("machine_boot_id", "char", "of the machine below, when the node booted", 40),
        _F("boot_at", "f64", "seconds since the epoch"),
        _F("boot_monotonic_s", "f64", "the machine's CLOCK_MONOTONIC at that time; may be negative"),
        _F("generation", "u64", "rises with each fault, reset, reboot and removal"),
        _F("init_error", "u32", "not 0: NVML code that initialisation returns (9 DRIVER_NOT_LOADED)"),
        _F("hang", "u32", "1: every call of the library blocks until this is 0"),
        _F("hang_init", "u32", "1: initialisation blocks until this is 0"),
        _F("spare", "u32", ""),
        _F("calls", "u64", "NVML calls made, of all kinds"),
        _F("log_next", "u64", "sequence number of the next kernel record"),
        _F("event_next", "u64", "number of the next NVML event"),
        _F("gpus", "gpu", "", MAX_GPUS),
        _F("events", "event", "", EVENT_SLOTS),
        _F("log", "record", "", LOG_SLOTS),
    ),
)

BLOCKS = (LINK, PROCESS, INSTANCE, GPU, RECORD, EVENT, NODE)

SCALARS: dict[str, tuple[Any, str]] = {  # kind -> ctypes class, C type
    "u32": (ctypes.c_uint32, "uint32_t"),
    "u64": (ctypes.c_uint64, "uint64_t"),
    "f64": (ctypes.c_double, "double"),
}


def _build() -> dict[str, type[ctypes.Structure]]:
    made: dict[str, type[ctypes.Structure]] = {}
    for block in BLOCKS:
        members: list[tuple[str, object]] = []
        for field in block.fields:
            if field.kind == "char":
                members.append((field.name, ctypes.c_char * field.count))
                continue
            kind: Any = SCALARS[field.kind][0] if field.kind in SCALARS else made[field.kind]
            members.append((field.name, kind if field.count == 1 else kind * field.count))
        made[block.name] = type(block.name.capitalize(), (ctypes.Structure,), {"_fields_": members})
    return made


STRUCTS = _build()
NodeBlock = STRUCTS["node"]
SIZE = ctypes.sizeof(NodeBlock)
