"""What ends a burn: the slowdown temperature, a hardware slowdown, or a GPU whose readings have ceased."""

import msgspec

from vocab.observations import GpuSample

# Clock event reasons (nvml.h): hardware slowdown 0x08, hardware thermal 0x40, power brake 0x80.
THERMAL, POWER_BRAKE = 0x40, 0x80
BRAKES = POWER_BRAKE | 0x08


class Stop(msgspec.Struct, frozen=True):
    """Why it was ended; ``code`` is set where that is the GPU's fault."""

    why: str
    code: str | None = None


def stop(sample: GpuSample | None) -> Stop | None:
    """Judge the last reading of the GPU under load; None: go on."""
    if sample is None or sample.error is not None or sample.readings is None:
        return Stop("its temperature is not known any more")
    readings = sample.readings
    at, limit, reasons = readings.temperature_c, readings.slowdown_c, readings.clock_reasons or 0
    if at is not None and limit is not None and at >= limit:
        return Stop(f"{at:.0f} °C: its slowdown temperature is {limit:.0f} °C", "thermal_slowdown")
    if reasons & THERMAL:
        return Stop("the hardware slows it down for heat", "thermal_slowdown")
    if reasons & BRAKES:
        code = "power_brake" if reasons & POWER_BRAKE else None
        return Stop(f"the hardware slows it down (clock reasons {reasons:#x})", code)
    if at is None:
        return Stop("its temperature is not known")
    return None
