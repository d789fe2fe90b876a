"""The names that NVIDIA's dcgm-exporter gives the same figures, in its units: MHz, W, mJ, MiB, percent.

From its default list of counters and the ones that are most often added to it. Shown on demand, so that boards made
for it go on working. Its labels are kept as they are, the spelling of ``Hostname`` included.
"""

from collections.abc import Callable

from vocab.metrics.row import Kind, Metric
from vocab.readings import Readings

LABELS = ("gpu", "UUID", "pci_bus_id", "device", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION")
MIB, MHZ = 2**20, 1e6
Figure = Callable[[Readings], float | None]


def _scaled(name: str, factor: float = 1.0) -> Figure:
    def figure(readings: Readings) -> float | None:
        value: float | None = getattr(readings, name)
        return None if value is None else value * factor

    return figure


def _free(readings: Readings) -> float | None:
    total, used = readings.memory_total_bytes, readings.memory_used_bytes
    return None if total is None or used is None else (total - used - (readings.memory_reserved_bytes or 0)) / MIB


def _row(name: str, text: str, figure: Figure, kind: Kind = Kind.GAUGE) -> tuple[Metric, Figure]:
    return Metric(f"DCGM_FI_{name}", kind, text, LABELS), figure


_C = Kind.COUNTER
DCGM: tuple[tuple[Metric, Figure], ...] = (
    _row("DEV_SM_CLOCK", "SM clock frequency (in MHz).", _scaled("sm_clock_hz", 1 / MHZ)),
    _row("DEV_MEM_CLOCK", "Memory clock frequency (in MHz).", _scaled("memory_clock_hz", 1 / MHZ)),
    _row("DEV_MEMORY_TEMP", "Memory temperature (in C).", _scaled("memory_temperature_c")),
    _row("DEV_GPU_TEMP", "GPU temperature (in C).", _scaled("temperature_c")),
    _row("DEV_POWER_USAGE", "Power draw (in W).", _scaled("power_w")),
    _row("DEV_TOTAL_ENERGY_CONSUMPTION", "Energy since the driver was loaded (in mJ).", _scaled("energy_j", 1e3), _C),
    _row("DEV_PCIE_REPLAY_COUNTER", "PCIe retries.", _scaled("pcie_replays"), _C),
    _row("DEV_GPU_UTIL", "GPU utilization (in %).", _scaled("utilization_ratio", 100)),
    _row("DEV_MEM_COPY_UTIL", "Memory utilization (in %).", _scaled("memory_utilization_ratio", 100)),
    _row("DEV_FB_FREE", "Framebuffer memory free (in MiB).", _free),
    _row("DEV_FB_USED", "Framebuffer memory used (in MiB).", _scaled("memory_used_bytes", 1 / MIB)),
    _row("DEV_FB_RESERVED", "Framebuffer memory reserved (in MiB).", _scaled("memory_reserved_bytes", 1 / MIB)),
    _row("DEV_UNCORRECTABLE_REMAPPED_ROWS", "Rows remapped after uncorrectable errors.", _scaled("remap_uncorrectable"),
         _C),
    _row("DEV_CORRECTABLE_REMAPPED_ROWS", "Rows remapped after correctable errors.", _scaled("remap_correctable"), _C),
    _row("DEV_ROW_REMAP_FAILURE", "Whether remapping of rows has failed.", _scaled("remap_failed")),
    _row("DEV_ECC_SBE_VOL_TOTAL", "Single-bit volatile ECC errors.", _scaled("ecc_correctable"), _C),
    _row("DEV_ECC_DBE_VOL_TOTAL", "Double-bit volatile ECC errors.", _scaled("ecc_uncorrectable"), _C),
    _row("DEV_ECC_SBE_AGG_TOTAL", "Single-bit persistent ECC errors.", _scaled("ecc_correctable_lifetime"), _C),
    _row("DEV_ECC_DBE_AGG_TOTAL", "Double-bit persistent ECC errors.", _scaled("ecc_uncorrectable_lifetime"), _C),
    _row("DEV_RETIRED_SBE", "Pages retired for single-bit errors.", _scaled("retired_pages_sbe"), _C),
    _row("DEV_RETIRED_DBE", "Pages retired for double-bit errors.", _scaled("retired_pages_dbe"), _C),
    _row("DEV_RETIRED_PENDING", "Pages that wait to be retired.", _scaled("retirement_pending")),
    _row("DEV_NVLINK_BANDWIDTH_TOTAL", "NVLink bandwidth of all lanes (in MB/s).", _scaled("nvlink_megabytes_per_s")),
    _row("PROF_GR_ENGINE_ACTIVE", "Share of time with the graphics engine active.", _scaled("graphics_active_ratio")),
    _row("PROF_SM_ACTIVE", "Share of cycles with at least one warp on an SM.", _scaled("sm_active_ratio")),
    _row("PROF_SM_OCCUPANCY", "Resident warps against the most that fit.", _scaled("sm_occupancy_ratio")),
    _row("PROF_PIPE_TENSOR_ACTIVE", "Share of cycles with the tensor pipe active.", _scaled("tensor_active_ratio")),
    _row("PROF_DRAM_ACTIVE", "Share of cycles with the memory moving data.", _scaled("dram_active_ratio")),
    _row("PROF_PCIE_TX_BYTES", "PCIe bytes sent each second.", _scaled("pcie_tx_bytes_per_s")),
    _row("PROF_PCIE_RX_BYTES", "PCIe bytes received each second.", _scaled("pcie_rx_bytes_per_s")),
)  # fmt: skip
XID = Metric("DCGM_FI_DEV_XID_ERRORS", Kind.GAUGE, "The last Xid; 0: none.", LABELS)
