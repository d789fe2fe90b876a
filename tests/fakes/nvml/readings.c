/* Temperature, power, clocks, memory, errors, PCIe: one call a figure. */
#include "fake.h"

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned int *out)
{
    ENTER(device, out);
    if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    *out = gpu->temperature_c;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *out)
{
    ENTER(device, out);
    if (out->version != nvmlTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (out->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    out->temperature = (int)gpu->temperature_c;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, nvmlMarginTemperature_t *out)
{
    ENTER(device, out);
    if (out->version != nvmlMarginTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    out->marginTemperature = (int)gpu->temperature_max_c - (int)gpu->temperature_c;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, nvmlTemperatureThresholds_t kind, unsigned int *out)
{
    ENTER(device, out);
    switch (kind) {
    case NVML_TEMPERATURE_THRESHOLD_SHUTDOWN: *out = gpu->temperature_shutdown_c; return NVML_SUCCESS;
    case NVML_TEMPERATURE_THRESHOLD_SLOWDOWN: *out = gpu->temperature_slowdown_c; return NVML_SUCCESS;
    case NVML_TEMPERATURE_THRESHOLD_GPU_MAX: *out = gpu->temperature_max_c; return NVML_SUCCESS;
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

GETTER(nvmlDeviceGetPowerUsage, unsigned int, gpu->power_mw)
GETTER(nvmlDeviceGetEnforcedPowerLimit, unsigned int, gpu->power_limit_mw)
GETTER(nvmlDeviceGetPowerManagementLimit, unsigned int, gpu->power_limit_mw)
GETTER(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int, gpu->power_limit_max_mw)
GETTER(nvmlDeviceGetTotalEnergyConsumption, unsigned long long, gpu->energy_mj)

nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned int *low, unsigned int *high)
{
    ENTER(device, low);
    if (high == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *low = gpu->power_limit_min_mw;
    *high = gpu->power_limit_max_mw;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *out)
{
    ENTER(device, out);
    if (gpu->mig_mode) return NVML_ERROR_NOT_SUPPORTED;
    out->gpu = gpu->utilization_percent;
    out->memory = gpu->memory_utilization_percent;
    return NVML_SUCCESS;
}

static nvmlReturn_t read_clock(nvmlDevice_t device, nvmlClockType_t kind, unsigned int *out, int highest)
{
    ENTER(device, out);
    switch (kind) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM: *out = highest ? gpu->sm_max_mhz : gpu->sm_mhz; return NVML_SUCCESS;
    case NVML_CLOCK_MEM: *out = gpu->memory_mhz; return NVML_SUCCESS;
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t kind, unsigned int *out)
{
    return read_clock(device, kind, out, 0);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t kind, unsigned int *out)
{
    return read_clock(device, kind, out, 1);
}

#define ALL_REASONS 0x1FFULL
GETTER(nvmlDeviceGetPerformanceState, nvmlPstates_t, gpu->performance_state)
GETTER(nvmlDeviceGetCurrentClocksEventReasons, unsigned long long, gpu->clock_reasons)
GETTER(nvmlDeviceGetCurrentClocksThrottleReasons, unsigned long long, gpu->clock_reasons)
GETTER(nvmlDeviceGetSupportedClocksEventReasons, unsigned long long, ALL_REASONS)
GETTER(nvmlDeviceGetSupportedClocksThrottleReasons, unsigned long long, ALL_REASONS)
UNSUPPORTED(nvmlDeviceGetFanSpeed, unsigned int)

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy, nvmlViolationTime_t *out)
{
    ENTER(device, out);
    out->referenceTime = 0;
    switch (policy) {
    case NVML_PERF_POLICY_POWER: out->violationTime = gpu->power_violation_ns; return NVML_SUCCESS;
    case NVML_PERF_POLICY_THERMAL: out->violationTime = gpu->thermal_violation_ns; return NVML_SUCCESS;
    default: out->violationTime = 0; return NVML_SUCCESS;
    }
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *current, nvmlEnableState_t *pending)
{
    ENTER(device, current);
    if (pending == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *current = (nvmlEnableState_t)gpu->ecc_mode;
    *pending = (nvmlEnableState_t)gpu->ecc_mode_pending;
    return NVML_SUCCESS;
}

static unsigned long long dram_errors(volatile corral_gpu_t *gpu, int uncorrected, int lifetime)
{
    if (uncorrected) return lifetime ? gpu->ecc_dram_uncorrected_lifetime : gpu->ecc_dram_uncorrected;
    return lifetime ? gpu->ecc_dram_corrected_lifetime : gpu->ecc_dram_corrected;
}

static unsigned long long sram_errors(volatile corral_gpu_t *gpu, int uncorrected, int lifetime)
{
    if (uncorrected) return lifetime ? gpu->ecc_sram_uncorrected_lifetime : gpu->ecc_sram_uncorrected;
    return lifetime ? gpu->ecc_sram_corrected_lifetime : gpu->ecc_sram_corrected;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t kind, nvmlEccCounterType_t counter,
                                         unsigned long long *out)
{
    ENTER(device, out);
    int uncorrected = kind == NVML_MEMORY_ERROR_TYPE_UNCORRECTED, lifetime = counter == NVML_AGGREGATE_ECC;
    *out = dram_errors(gpu, uncorrected, lifetime) + sram_errors(gpu, uncorrected, lifetime);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t kind,
                                             nvmlEccCounterType_t counter, nvmlMemoryLocation_t location,
                                             unsigned long long *out)
{
    ENTER_ANY(device, out);
    int uncorrected = kind == NVML_MEMORY_ERROR_TYPE_UNCORRECTED, lifetime = counter == NVML_AGGREGATE_ECC;
    if (instance != NULL) { /* only these are counted by instance */
        if (!uncorrected || lifetime || location != NVML_MEMORY_LOCATION_SRAM) return NVML_ERROR_NOT_SUPPORTED;
        *out = instance->sram_uncorrected;
        return NVML_SUCCESS;
    }
    switch (location) {
    case NVML_MEMORY_LOCATION_DRAM: *out = dram_errors(gpu, uncorrected, lifetime); return NVML_SUCCESS;
    case NVML_MEMORY_LOCATION_SRAM: *out = sram_errors(gpu, uncorrected, lifetime); return NVML_SUCCESS;
    default: return NVML_ERROR_NOT_SUPPORTED; /* not told apart since Ampere */
    }
}

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, nvmlEccSramErrorStatus_t *out)
{
    ENTER(device, out);
    if (out->version != nvmlEccSramErrorStatus_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    *out = (nvmlEccSramErrorStatus_t){.version = nvmlEccSramErrorStatus_v1};
    out->aggregateUncSecDed = gpu->ecc_sram_uncorrected_lifetime;
    out->aggregateCor = gpu->ecc_sram_corrected_lifetime;
    out->volatileUncSecDed = gpu->ecc_sram_uncorrected;
    out->volatileCor = gpu->ecc_sram_corrected;
    out->aggregateUncBucketL2 = gpu->ecc_sram_uncorrected_lifetime;
    out->bThresholdExceeded = gpu->sram_threshold_exceeded;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable, unsigned int *uncorrectable,
                                       unsigned int *pending, unsigned int *failed)
{
    ENTER(device, correctable);
    if (uncorrectable == NULL || pending == NULL || failed == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (gpu->mig_mode && gpu->instance_count) return NVML_ERROR_NOT_SUPPORTED;
    *correctable = gpu->remap_correctable;
    *uncorrectable = gpu->remap_uncorrectable;
    *pending = gpu->remap_pending;
    *failed = gpu->remap_failed;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, nvmlRowRemapperHistogramValues_t *out)
{
    ENTER(device, out);
    out->max = gpu->banks[0];
    out->high = gpu->banks[1];
    out->partial = gpu->banks[2];
    out->low = gpu->banks[3];
    out->none = gpu->banks[4];
    return NVML_SUCCESS;
}

GETTER(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, gpu->pcie_generation)
GETTER(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, gpu->pcie_generation_max)
GETTER(nvmlDeviceGetGpuMaxPcieLinkGeneration, unsigned int, gpu->pcie_generation_max)
GETTER(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, gpu->pcie_width)
GETTER(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, gpu->pcie_width_max)
GETTER(nvmlDeviceGetPcieReplayCounter, unsigned int, gpu->pcie_replays)

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned int *out)
{
    ENTER(device, out);
    pause_ms(20); /* it measures over 20 ms */
    *out = counter == NVML_PCIE_UTIL_TX_BYTES ? gpu->pcie_tx_kb_per_s : gpu->pcie_rx_kb_per_s;
    return NVML_SUCCESS;
}
