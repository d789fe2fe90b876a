"""How the numbers of NVML and DCGM become base units."""

from typing import Any

NO_RATE = 0xFFF  # mantissa 15 and exponent 255: nothing was measured


def same(value: Any) -> Any:
    """Counts, masks, states, degrees, watts, bytes a second."""
    return value


def milli(value: float) -> float:
    """mW, mJ."""
    return value / 1000


def nano(value: float) -> float:
    """ns."""
    return value / 1e9


def percent(value: float) -> float:
    """0 to 100 as a ratio."""
    return value / 100


def mega(value: float) -> float:
    """MHz, MB/s."""
    return float(value * 1_000_000)


def kibi(value: int) -> int:
    """KiB."""
    return value * 1024


def mebi(value: float) -> float:
    """MiB, MiB/s."""
    return value * 2**20


def bit_error_rate(value: int) -> float | None:
    """NVLink 5: exponent in bits 0 to 7, mantissa in bits 8 to 11, mantissa * 10 ** -exponent; None: not measured."""
    rate = int(value) & 0xFFF
    return None if rate == NO_RATE else float(rate >> 8) * 10.0 ** -(rate & 0xFF)
