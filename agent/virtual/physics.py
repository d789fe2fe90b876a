"""How a virtual GPU moves: work makes power, power makes heat, heat and limits make clocks. Pure.

The model is coarse and meant so: first-order lags around the steady states that public reports of the
board show. It must be right in its couplings (a busy GPU is warm, a capped one is slow), not in its third
digit. Figures marked [H] are ours.
"""

from math import exp, sqrt

import msgspec

from agent.virtual.boards import Board

# bits of the clock event reasons (nvml.h)
IDLE = 0x1
SW_POWER_CAP = 0x4
HW_SLOWDOWN = 0x8
SW_THERMAL = 0x20
HW_THERMAL = 0x40
HW_POWER_BRAKE = 0x80

POWER_TAU_S = 0.5  # NVML shows the mean of one second on this board
CONTEXT_W = 45.0  # a CUDA context alone keeps the clocks up: about 115 W [H]
KERNEL_W = 30.0  # added while any kernel runs, however small [H]
SM_W = 467.0  # all SMs at work; with the next line a burn-in at 11 % DRAM gives its reported 630 W
DRAM_W = 160.0  # memory interface at its peak [H]
HALVED = 0.5  # hardware slowdown cuts clocks to half or less
THERMAL_TRIM = 0.85  # the driver lowers clocks in small steps first [H]


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """What runs on a GPU, as ratios of time or of the peak; ``contexts`` is how many processes hold it.

    Traffic is KiB a second each way: with the host, and over all NVLinks together.
    """

    utilization: float = 0.0
    sm_active: float = 0.0
    sm_occupancy: float = 0.0
    tensor: float = 0.0
    dram: float = 0.0
    contexts: int = 0
    host_kib_per_s: int = 0
    links_kib_per_s: int = 0


class Upset(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong around the GPU: failed cooling holds the core at ``heat_c``; the chassis brakes power."""

    heat_c: float | None = None
    power_brake: bool = False


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """What moves: temperatures, power, energy since driver load, clock, and time lost by reason."""

    core_c: float
    memory_c: float
    power_w: float
    energy_j: float = 0.0
    sm_mhz: int = 0
    clock_reasons: int = IDLE
    power_violation_ns: int = 0
    sw_thermal_ns: int = 0
    hw_thermal_ns: int = 0
    power_brake_ns: int = 0


def at_rest(board: Board) -> Vitals:
    """A GPU that has been idle for long."""
    power = board.power_idle_w
    return Vitals(
        core_c=board.ambient_c + board.core_c_per_w * power,
        memory_c=board.memory_ambient_c + board.memory_c_per_w * power,
        power_w=power,
        sm_mhz=board.sm_clock_idle_mhz,
    )


def step(board: Board, was: Vitals, load: Load, upset: Upset, dt: float) -> Vitals:
    """The vitals ``dt`` seconds after ``was`` under a steady load."""
    reasons = _reasons(board, was.core_c, load, upset)
    speed = _speed(board, load, reasons)
    power = _towards(was.power_w, _power(board, load, speed), dt, POWER_TAU_S)
    core = _towards(was.core_c, board.ambient_c + board.core_c_per_w * power, dt, board.core_tau_s)
    memory_goal = board.memory_ambient_c + board.memory_c_per_w * power
    passed = round(dt * 1e9)
    return Vitals(
        core_c=core if upset.heat_c is None else upset.heat_c,
        memory_c=_towards(was.memory_c, memory_goal, dt, board.memory_tau_s),
        power_w=power,
        energy_j=was.energy_j + (was.power_w + power) / 2 * dt,
        sm_mhz=_clock(board, load, speed),
        clock_reasons=reasons,
        power_violation_ns=was.power_violation_ns + passed * bool(reasons & SW_POWER_CAP),
        sw_thermal_ns=was.sw_thermal_ns + passed * bool(reasons & SW_THERMAL),
        hw_thermal_ns=was.hw_thermal_ns + passed * bool(reasons & HW_THERMAL),
        power_brake_ns=was.power_brake_ns + passed * bool(reasons & HW_POWER_BRAKE),
    )


def _towards(now: float, goal: float, dt: float, tau: float) -> float:
    return goal + (now - goal) * exp(-dt / tau)


def _demand(board: Board, load: Load) -> float:
    """Watts that the load would draw at full clocks."""
    kernels = KERNEL_W * load.utilization + SM_W * load.sm_active + DRAM_W * load.dram
    return board.power_idle_w + CONTEXT_W * (load.contexts > 0) + kernels


def _reasons(board: Board, core_c: float, load: Load, upset: Upset) -> int:
    if upset.power_brake:
        return HW_SLOWDOWN | HW_POWER_BRAKE
    hottest = core_c if upset.heat_c is None else max(core_c, upset.heat_c)
    if hottest >= board.temperature_slowdown_c:
        return HW_SLOWDOWN | HW_THERMAL
    if hottest >= board.temperature_max_c:
        return SW_THERMAL
    if _demand(board, load) > board.power_limit_w:
        return SW_POWER_CAP
    return 0 if load.utilization else IDLE


def _speed(board: Board, load: Load, reasons: int) -> float:
    """Clock as a share of the highest."""
    if reasons & HW_SLOWDOWN:
        return HALVED
    if reasons & SW_THERMAL:
        return THERMAL_TRIM
    if reasons & SW_POWER_CAP:
        return sqrt(board.power_limit_w / _demand(board, load))  # voltage falls with frequency
    return 1.0


def _power(board: Board, load: Load, speed: float) -> float:
    """Watts drawn: what the load adds falls with the square of the clock, and the limit holds."""
    added = (_demand(board, load) - board.power_idle_w) * speed**2
    return min(board.power_idle_w + added, board.power_limit_w)


def _clock(board: Board, load: Load, speed: float) -> int:
    if not load.contexts and not load.utilization:
        return board.sm_clock_idle_mhz
    return int(board.sm_clock_max_mhz * speed) // 15 * 15  # the board's clocks come in steps of 15 MHz
