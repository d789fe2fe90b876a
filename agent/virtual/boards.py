"""Boards that a virtual node can be made of: their fixed values, limits and idle figures.

Typed from public figures: NVIDIA's H100 SXM5 data sheet (80 GB HBM3, 3.35 TB/s, 700 W, NVLink 4 with 18
links) and published ``nvidia-smi -q`` reports of 8-GPU HGX H100 machines (drivers 535 to 590). A value
marked [H] is our estimate where no public number was found.
"""

import re

import msgspec

from vocab.errors import ConfigError

MIB = 2**20


class Board(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU board. Temperatures in degrees Celsius, clocks in MHz, power in watts."""

    key: str  # the word in a shape such as 8xH100
    name: str
    vbios: str
    part_number: str
    pci_device_id: int  # device in the upper, vendor in the lower 16 bits, as NVML gives it
    pci_subsystem_id: int
    pci_buses: tuple[int, ...]  # one a GPU, in index order

    memory_total_bytes: int
    memory_reserved_bytes: int
    row_remap_banks: int  # banks that still have all their spare rows, on a new board

    power_idle_w: float
    power_limit_w: float
    power_limit_min_w: float

    sm_clock_idle_mhz: int
    sm_clock_max_mhz: int
    memory_clock_mhz: int

    temperature_max_c: int  # the driver starts to lower clocks
    temperature_slowdown_c: int  # the hardware halves clocks
    temperature_shutdown_c: int
    ambient_c: float  # core temperature at no power: inlet air and sink [H]
    core_c_per_w: float  # steady state, degrees above ambient per watt of board power
    core_tau_s: float  # 63 % of a step after this time [H]
    memory_ambient_c: float
    memory_c_per_w: float
    memory_tau_s: float

    links: int
    link_version: int
    link_speed_mb_per_s: int  # each way
    pcie_generation: int
    pcie_width: int


H100 = Board(
    key="H100",
    name="NVIDIA H100 80GB HBM3",
    vbios="96.00.99.00.01",
    part_number="692-2G520-0200-000",
    pci_device_id=0x233010DE,
    pci_subsystem_id=0x16C110DE,
    pci_buses=(0x19, 0x3B, 0x4C, 0x5D, 0x9B, 0xBB, 0xCB, 0xDB),  # a common HGX host: four GPUs a socket
    memory_total_bytes=81559 * MIB,  # as the driver reports it, ECC on
    memory_reserved_bytes=480 * MIB,
    row_remap_banks=2560,
    power_idle_w=69.0,  # 68-70 W in three reports of boards without a context
    power_limit_w=700.0,
    power_limit_min_w=200.0,
    sm_clock_idle_mhz=345,
    sm_clock_max_mhz=1980,
    memory_clock_mhz=2619,
    temperature_max_c=87,  # current + T.Limit margin of the reports: 29 + 58, 41 + 46
    temperature_slowdown_c=89,  # T.Limit -2
    temperature_shutdown_c=95,  # T.Limit -8
    ambient_c=26.0,  # with the next line: 29 C at 69 W, 57 C at 630 W (reports: 29 C, 59 C)
    core_c_per_w=0.05,
    core_tau_s=12.0,
    memory_ambient_c=34.7,  # 37 C at 69 W, 55 C at 630 W, as reported
    memory_c_per_w=0.033,
    memory_tau_s=25.0,
    links=18,
    link_version=4,
    link_speed_mb_per_s=26562,
    pcie_generation=5,
    pcie_width=16,
)

BOARDS = {board.key: board for board in (H100,)}
BY_NAME = {board.name: board for board in BOARDS.values()}


def parse_shape(shape: str) -> tuple[int, Board]:
    """``8xH100`` as (8, the board). Raises ConfigError naming the boards that exist."""
    match = re.fullmatch(r"(\d+)x(\w+)", shape)
    board = BOARDS.get(match[2]) if match else None
    if match is None or board is None:
        raise ConfigError(f"virtual: {shape!r} is not COUNTxBOARD, for example 8xH100; boards: {', '.join(BOARDS)}")
    count = int(match[1])
    if not 1 <= count <= len(board.pci_buses):
        raise ConfigError(f"virtual: {shape!r}: a node holds 1 to {len(board.pci_buses)} {board.key}")
    return count, board
