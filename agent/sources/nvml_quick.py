"""What is read of a GPU each second, one cheap call a figure: C functions of nvml.h into variables made once.

A row whose function a library or board does not have gives way to the next that tells the same.
"""

from collections.abc import Callable
from ctypes import byref, c_uint, c_ulonglong
from typing import Any

import msgspec

from agent.sources.child import CallFailed
from agent.sources.nvml_call import Caller
from agent.sources.nvml_errors import NEVER_SUPPORTED
from agent.sources.units import mega, milli, percent

SENSOR_GPU = 0
CLOCK_SM, CLOCK_MEMORY = 1, 2

Values = dict[str, Any]


class Quick(msgspec.Struct, frozen=True):
    """One call of the C library: ``out`` makes its variable, ``split`` gives the readings from it by ``names``."""

    names: tuple[str, ...]
    call: str
    out: Callable[[Any], Any]
    split: Callable[[Any], tuple[Any, ...]]
    arguments: tuple[int, ...] = ()


def _uint(_: Any) -> Any:
    return c_uint()


def _number(name: str, call: str, convert: Callable[[int], float], *arguments: int) -> Quick:
    return Quick((name,), call, _uint, lambda out: (convert(out.value),), arguments)


def _versioned(name: str, version: str, **set_: int) -> Callable[[Any], Any]:
    def make(api: Any) -> Any:
        out = getattr(api, name)()
        out.version = getattr(api, version)
        for field, value in set_.items():
            setattr(out, field, value)
        return out

    return make


MEMORY = ("memory_total_bytes", "memory_used_bytes", "memory_reserved_bytes")

# Each tuple: the same readings, the best way first.
QUICK: tuple[tuple[Quick, ...], ...] = (
    (
        _number("temperature_c", "nvmlDeviceGetTemperature", float, SENSOR_GPU),
        Quick(
            ("temperature_c",),
            "nvmlDeviceGetTemperatureV",
            _versioned("c_nvmlTemperature_v1_t", "nvmlTemperature_v1", sensorType=SENSOR_GPU),
            lambda out: (float(out.temperature),),
        ),
    ),
    (
        Quick(
            ("margin_c",),
            "nvmlDeviceGetMarginTemperature",
            _versioned("c_nvmlMarginTemperature_v1_t", "nvmlMarginTemperature_v1"),
            lambda out: (float(out.marginTemperature),),
        ),
    ),
    (_number("power_w", "nvmlDeviceGetPowerUsage", milli),),
    (_number("sm_clock_hz", "nvmlDeviceGetClockInfo", mega, CLOCK_SM),),
    (_number("memory_clock_hz", "nvmlDeviceGetClockInfo", mega, CLOCK_MEMORY),),
    tuple(  # the older name is the only one before driver 535
        Quick(
            ("clock_reasons",),
            f"nvmlDeviceGetCurrentClocks{word}Reasons",
            lambda _: c_ulonglong(),
            lambda out: (out.value,),
        )
        for word in ("Event", "Throttle")
    ),
    (_number("performance_state", "nvmlDeviceGetPerformanceState", int),),
    (
        Quick(
            ("utilization_ratio", "memory_utilization_ratio"),
            "nvmlDeviceGetUtilizationRates",
            lambda api: api.c_nvmlUtilization_t(),
            lambda out: (percent(out.gpu), percent(out.memory)),
        ),
    ),
    (
        Quick(
            MEMORY,
            "nvmlDeviceGetMemoryInfo_v2",
            _versioned("c_nvmlMemory_v2_t", "nvmlMemory_v2"),
            lambda out: (out.total, out.used, out.reserved),
        ),
        Quick(  # counts reserved memory as used
            MEMORY,
            "nvmlDeviceGetMemoryInfo",
            lambda api: api.c_nvmlMemory_t(),
            lambda out: (out.total, out.used, None),
        ),
    ),
)
assert all(len({row.names for row in ways}) == 1 for ways in QUICK)


class QuickRead:
    """One tuple of QUICK, for one GPU: its variable, and which way works."""

    def __init__(self, ways: tuple[Quick, ...]) -> None:
        self.names = ways[0].names
        self._ways = ways
        self._way: Quick | None = None
        self._arguments: tuple[Any, ...] = ()
        self._out: Any = None

    def take(self, caller: Caller, handle: Any) -> Values:
        """The readings now. Raises CallFailed."""
        if self._way is None:
            self._prepare(caller.api, handle, 0)
        while True:
            way = self._way
            assert way is not None
            try:
                caller.raw(way.call, *self._arguments)
            except CallFailed as failed:
                number = self._ways.index(way) + 1
                if failed.error not in NEVER_SUPPORTED or number == len(self._ways):
                    raise
                self._prepare(caller.api, handle, number)
            else:
                return dict(zip(self.names, way.split(self._out), strict=True))

    def _prepare(self, api: Any, handle: Any, number: int) -> None:
        way = self._ways[number]
        self._way, self._out = way, way.out(api)
        self._arguments = (handle, *way.arguments, byref(self._out))
