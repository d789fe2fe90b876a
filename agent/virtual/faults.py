"""Faults for a virtual node: what happens in its silicon, and what its driver then says.

A fault is real to the node: the counters move, the kernel log gets the driver's lines, NVML's event sets
wake, and the GPU behaves accordingly until a reset, a reboot or ``clear``.
"""

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from agent.virtual.lines import FALLEN_OFF, GENERIC, INTRODUCTION, XID_TEXTS, xid_line
from agent.virtual.state import XID_EVENT, VirtualState
from agent.virtual.view import bus_of
from vocab.errors import InputError

GPU_IS_LOST = 15  # nvml.h: fallen off the bus, or unreachable for another reason
ECC_CORRECTED_EVENT = 0x1  # nvmlEventTypeSingleBitEccError
ECC_UNCORRECTED_EVENT = 0x2  # nvmlEventTypeDoubleBitEccError
FAILED_COOLING_C = 91.0  # over the slowdown temperature of every board of the table, under its shutdown
HIGH_SBE_RATE = 4096  # corrected errors that make the driver mask the interrupt [H]
ADDRESS = "0x0000000018f31d80"

Kind = Literal["xid", "thermal", "power_brake", "ecc", "remap", "link", "hang", "corrupt", "pcie", "clear"]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One fault of one GPU, named by its index.

    ``code``, ``pid``, ``process`` and ``text`` (in place of the driver's usual payload) belong to ``xid``;
    ``facility`` other than 0 marks the record as written by a program. ``count`` is how many errors
    (``ecc``) or rows (``remap``); ``correctable`` chooses the kind of error; ``failed`` makes a remap fail.
    ``temperature_c`` is where a core without cooling stays; ``link`` is for ``link`` and Xid 74.
    """

    kind: Kind
    gpu: int = 0
    code: int | None = None
    pid: int | None = None
    process: str | None = None
    text: str | None = None
    facility: int = 0
    count: int = 1
    correctable: bool = False
    failed: bool = False
    temperature_c: float | None = None
    link: int = 0


def apply(state: VirtualState, fault: Fault) -> tuple[int, ...]:
    """Let it happen. Returns the sequence numbers of the kernel records that it wrote, oldest first.

    Raises InputError if the fault names what the node does not have.
    """
    gpu = state.gpu(fault.gpu)
    _check(gpu, fault)
    with state.changing():
        before = int(state.block.log_next)
        _ACTS[fault.kind](state, gpu, fault)
        return tuple(range(before, int(state.block.log_next)))


def _check(gpu: Any, fault: Fault) -> None:
    if fault.kind == "xid" and not (fault.code and 0 < fault.code < 1000):
        raise InputError(f"code: {fault.code} is not an Xid; give a number from 1 to 999")
    if fault.count < 1:
        raise InputError(f"count: {fault.count} is not a number of errors; give 1 or more")
    if not 0 <= fault.link < gpu.link_count:
        raise InputError(f"link: {fault.link} is not a link of this GPU; it has 0 to {gpu.link_count - 1}")


def _xid(state: VirtualState, gpu: Any, fault: Fault) -> None:
    code = fault.code or 0
    if fault.facility == 0:  # a line that a program wrote changes no silicon and is no event of the driver
        _XID_EFFECTS.get(code, _nothing)(gpu, fault)
        state.push_event(fault.gpu, XID_EVENT, code)
    words = {
        "bus": bus_of(gpu),
        "index": fault.gpu,
        "link": fault.link,
        "address": ADDRESS,
        "uuid": gpu.uuid.decode(),
        "serial": gpu.serial.decode(),
    }
    for line in () if gpu.introduced else INTRODUCTION:
        state.log(line.format(**words))
    gpu.introduced = 1
    usual = (payload.format(**words) for payload in XID_TEXTS.get(code, GENERIC))
    for payload in usual if fault.text is None else (fault.text,):
        state.log(xid_line(bus_of(gpu), code, payload, fault.pid, fault.process), facility=fault.facility)
    for line in FALLEN_OFF if code == 79 else ():
        state.log(line.format(**words), facility=fault.facility)


def _nothing(_: Any, __: Fault) -> None:
    """Most Xids tell of a process's mistake or of a passing error."""


def _lose(gpu: Any, _: Fault) -> None:
    gpu.lost = GPU_IS_LOST


def _corrupt(gpu: Any, fault: Fault) -> None:
    gpu.ecc_dram_uncorrected += fault.count
    gpu.ecc_dram_uncorrected_lifetime += fault.count


def _correct(gpu: Any, count: int) -> None:
    gpu.ecc_dram_corrected += count
    gpu.ecc_dram_corrected_lifetime += count


def _mark_remap(gpu: Any, fault: Fault) -> None:
    if fault.correctable:
        gpu.remap_correctable += fault.count
    else:
        gpu.remap_uncorrectable += fault.count
    gpu.remap_pending = 1


def _fail_remap(gpu: Any, _: Fault) -> None:
    gpu.remap_failed = 1
    if gpu.banks[0]:
        gpu.banks[0] -= 1
        gpu.banks[4] += 1


def _drop_link(gpu: Any, fault: Fault) -> None:
    link = gpu.links[fault.link]
    link.state = 0
    link.recoveries += 1
    link.crc_errors += 1


def _want_reset(gpu: Any, _: Fault) -> None:
    gpu.recovery_action = 1


_XID_EFFECTS: dict[int, Callable[[Any, Fault], None]] = {
    48: _corrupt,
    63: _mark_remap,
    64: _fail_remap,
    74: _drop_link,
    79: _lose,
    92: lambda gpu, _: _correct(gpu, HIGH_SBE_RATE),
    94: _corrupt,
    95: _corrupt,
    154: _want_reset,
}


def _thermal(_: VirtualState, gpu: Any, fault: Fault) -> None:
    gpu.heat_c = FAILED_COOLING_C if fault.temperature_c is None else fault.temperature_c


def _power_brake(_: VirtualState, gpu: Any, __: Fault) -> None:
    gpu.power_brake = 1


def _ecc(state: VirtualState, gpu: Any, fault: Fault) -> None:
    if fault.correctable:
        _correct(gpu, fault.count)
    else:
        _corrupt(gpu, fault)
    kind = ECC_CORRECTED_EVENT if fault.correctable else ECC_UNCORRECTED_EVENT
    state.push_event(fault.gpu, kind, 0)


def _remap(_: VirtualState, gpu: Any, fault: Fault) -> None:
    if fault.failed:
        _fail_remap(gpu, fault)
    else:
        _mark_remap(gpu, fault)


def _link(_: VirtualState, gpu: Any, fault: Fault) -> None:
    _drop_link(gpu, fault)


def _hang(_: VirtualState, gpu: Any, __: Fault) -> None:
    gpu.hang = 1


def _compute_wrong(_: VirtualState, gpu: Any, __: Fault) -> None:
    """Nothing reports it, and neither a reset nor a reboot heals it: an active check finds it."""
    gpu.corrupt = 1


def _lose_lanes(_: VirtualState, gpu: Any, __: Fault) -> None:
    """Half of the PCIe lanes, as from a card that sits loose."""
    gpu.pcie_width = gpu.pcie_width_max // 2


def _clear(_: VirtualState, gpu: Any, __: Fault) -> None:
    """As if the board had been replaced by a good one of the same identity; lifetime counters included."""
    for name in ("lost", "hang", "corrupt", "removed", "power_brake", "heat_c", "recovery_action"):
        setattr(gpu, name, 0)
    gpu.sram_threshold_exceeded = 0
    gpu.pcie_width = gpu.pcie_width_max
    for name in ("remap_correctable", "remap_uncorrectable", "remap_pending", "remap_failed"):
        setattr(gpu, name, 0)
    for unit in ("dram", "sram"):
        for error in ("corrected", "uncorrected"):
            setattr(gpu, f"ecc_{unit}_{error}", 0)
            setattr(gpu, f"ecc_{unit}_{error}_lifetime", 0)
    gpu.banks[0] += sum(gpu.banks[1:])
    gpu.banks[1:] = [0] * 4
    mend_links(gpu)


def mend_links(gpu: Any) -> None:
    """All links up and their counters at zero, as after a reset."""
    for link in gpu.links[: gpu.link_count]:
        link.state, link.crc_errors, link.replays, link.recoveries = 1, 0, 0, 0


_ACTS: dict[str, Callable[[VirtualState, Any, Fault], None]] = {
    "xid": _xid,
    "thermal": _thermal,
    "power_brake": _power_brake,
    "ecc": _ecc,
    "remap": _remap,
    "link": _link,
    "hang": _hang,
    "corrupt": _compute_wrong,
    "pcie": _lose_lanes,
    "clear": _clear,
}


def befallen(state: VirtualState, uuid: str) -> tuple[str, ...]:
    """Which faults of this GPU befall work that is done in its place (``lost``, ``hang``, ``corrupt``)."""
    gpu = next((gpu for gpu in state.gpus if gpu.uuid.decode() == uuid), None)
    if gpu is None or gpu.removed:
        return ("lost",)
    return tuple(name for name in ("lost", "hang", "corrupt") if getattr(gpu, name))
