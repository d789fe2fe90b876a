"""What a GPU does with its time, in one word: the truth beside *100 % utilization*.

Utilization says that some kernel was resident. Activity of the SMs, of the tensor pipes and of the memory says what
the chip did meanwhile, and power whether it did anything at all. First match:

    hung           busy by utilization, idle by SM activity and power
    throttled      heat, the power brake or the hardware itself takes the clock away while it works
    idle           hardly any kernel runs
    memory-bound   the memory moves data most of the time: decoding; a larger batch is nearly free
    compute-bound  the tensor pipes or the SMs work most of the time: prefill, training
    launch-bound   a kernel is always there and leaves the chip empty: small kernels, small batches
    starved        time passes without a kernel: it waits for its host

The share is of the roof that binds: of the cycles in which memory, or the tensor pipes, could have worked. The limits
between the words are judgement. Where a counter is not known the word is not known either.
"""

from enum import StrEnum

import msgspec

from vocab.readings import Readings

BUSY = 0.95
SM_IDLE = 0.10  # hung collectives still show 0.06: a few warps spin
POWER_IDLE = 0.20  # of the limit: hung boards of 700 W draw 70 W
IDLE = 0.05  # utilization
BINDS = 0.40  # of a roof; what is under it leaves more than half of the chip unused
SM_FULL = 0.80  # kernels without tensor pipes
ALWAYS = 0.80  # utilization: a kernel is there nearly all the time

_HW_SLOWDOWN, _SW_THERMAL, _HW_THERMAL, _BRAKE = 0x8, 0x20, 0x40, 0x80  # NVML's clock reasons
_ALL_KNOWN = 0xFFFF  # NVML defines nine bits; a mask far above them is a failed read


class Doing(StrEnum):
    """The word."""

    HUNG = "hung"
    THROTTLED = "throttled"
    IDLE = "idle"
    MEMORY_BOUND = "memory-bound"
    COMPUTE_BOUND = "compute-bound"
    LAUNCH_BOUND = "launch-bound"
    STARVED = "starved"


class Activity(msgspec.Struct, frozen=True):
    """What a GPU does. ``share``: of the roof, or of its time, 0 to 1; ``by``: what takes the clock away."""

    doing: Doing
    share: float = 0.0
    by: str = ""

    def __str__(self) -> str:
        """As a person reads it."""
        match self.doing:
            case Doing.MEMORY_BOUND:
                return f"memory-bound at {self.share:.0%} of the bandwidth roof"
            case Doing.COMPUTE_BOUND:
                return f"compute-bound at {self.share:.0%}"
            case Doing.LAUNCH_BOUND:
                return f"launch-bound: {self.share:.0%} of the chip used"
            case Doing.STARVED:
                return f"starved: a kernel runs {self.share:.0%} of the time"
            case Doing.THROTTLED:
                return f"throttled by {self.by}"
        return str(self.doing)


def contradicts(readings: Readings) -> bool | None:
    """Whether it is busy by one counter and idle by the rest; None where one of them is not known."""
    busy, active = readings.utilization_ratio, readings.sm_active_ratio
    power, limit = readings.power_w, readings.power_limit_w
    if busy is None or active is None or power is None or not limit:
        return None
    return busy >= BUSY and active <= SM_IDLE and power < POWER_IDLE * limit


def slowed_by(readings: Readings) -> str | None:
    """What takes the clock away, None if nothing that should not. The power limit under load is as it should be."""
    mask = readings.clock_reasons
    if mask is None or not 0 <= mask <= _ALL_KNOWN:
        return None
    if mask & (_HW_THERMAL | _SW_THERMAL):
        return "heat"
    if mask & _BRAKE:
        return "power brake"
    return "hardware slowdown" if mask & _HW_SLOWDOWN else None


def activity(readings: Readings | None) -> Activity | None:
    """What a GPU with these readings does; None where that is not known."""
    if readings is None or readings.utilization_ratio is None:
        return None
    busy = readings.utilization_ratio
    if contradicts(readings):
        return Activity(Doing.HUNG, busy)
    if busy < IDLE:
        return Activity(Doing.IDLE, busy)
    by = slowed_by(readings)
    if by is not None:
        return Activity(Doing.THROTTLED, busy, by)
    memory, active = readings.dram_active_ratio, readings.sm_active_ratio
    if memory is None or active is None:
        return None
    tensor = readings.tensor_active_ratio or 0.0
    if memory >= BINDS and memory >= tensor:
        return Activity(Doing.MEMORY_BOUND, memory)
    if tensor >= BINDS or active >= SM_FULL:
        return Activity(Doing.COMPUTE_BOUND, max(tensor, active) if tensor < BINDS else tensor)
    if busy >= ALWAYS:
        return Activity(Doing.LAUNCH_BOUND, max(memory, active))
    return Activity(Doing.STARVED, busy)
