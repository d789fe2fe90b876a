/* Field values in bulk, NVLink and the fabric. A call succeeds while single fields of it fail. */
#include "fake.h"

#include <string.h>
#include <sys/time.h>

static nvmlReturn_t give_uint(nvmlFieldValue_t *field, unsigned int value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field->value.uiVal = value;
    return NVML_SUCCESS;
}

static nvmlReturn_t give_int(nvmlFieldValue_t *field, int value)
{
    field->valueType = NVML_VALUE_TYPE_SIGNED_INT;
    field->value.siVal = value;
    return NVML_SUCCESS;
}

static nvmlReturn_t give_ull(nvmlFieldValue_t *field, unsigned long long value)
{
    field->valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    field->value.ullVal = value;
    return NVML_SUCCESS;
}

/* The counter of one link that has a field of its own, as there was before Hopper; NULL if this is none. */
static volatile uint64_t *own_field(volatile corral_gpu_t *gpu, unsigned id)
{
    static const struct {
        unsigned low, high, kind; /* links 0 to 5, links 6 to 11 */
    } ranges[] = {
        {NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_L6, 0},
        {NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_L6, 1},
        {NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L0, NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_L6, 2},
    };
    for (unsigned at = 0; at < sizeof ranges / sizeof *ranges; at++) {
        unsigned number = CORRAL_MAX_LINKS;
        if (id >= ranges[at].low && id < ranges[at].low + 6) number = id - ranges[at].low;
        if (id >= ranges[at].high && id < ranges[at].high + 6) number = id - ranges[at].high + 6;
        if (number >= gpu->link_count) continue;
        volatile corral_link_t *link = &gpu->links[number];
        return ranges[at].kind == 0 ? &link->crc_errors : ranges[at].kind == 1 ? &link->replays : &link->recoveries;
    }
    return NULL;
}

static nvmlReturn_t link_field(volatile corral_gpu_t *gpu, nvmlFieldValue_t *field)
{
    unsigned generation = gpu->link_count ? gpu->links[0].version : 0;
    volatile uint64_t *own = generation && generation < 4 ? own_field(gpu, field->fieldId) : NULL;
    if (own != NULL) return give_ull(field, *own);
    if (field->scopeId >= gpu->link_count) return NVML_ERROR_INVALID_ARGUMENT;
    volatile corral_link_t *link = &gpu->links[field->scopeId];
    switch (field->fieldId) {
    case NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY:
    case NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY:
    case NVML_FI_DEV_NVLINK_ERROR_DL_CRC:
        if (generation != 4) return NVML_ERROR_NOT_SUPPORTED; /* Hopper's */
        break;
    case NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS:
    case NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER:
    case NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES:
    case NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES:
        if (generation < 5) return NVML_ERROR_NOT_SUPPORTED;
        break;
    default: break;
    }
    switch (field->fieldId) {
    case NVML_FI_DEV_NVLINK_GET_STATE: return give_uint(field, gpu->mig_mode ? 0 : link->state);
    case NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS: return give_ull(field, link->recoveries);
    case NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER: return give_ull(field, link->ber ? link->ber : 0xFFF);
    case NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES: return give_ull(field, gpu->nvlink_tx_kib * 1024 / gpu->link_count);
    case NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES: return give_ull(field, gpu->nvlink_rx_kib * 1024 / gpu->link_count);
    case NVML_FI_DEV_NVLINK_GET_VERSION: return give_uint(field, link->version);
    case NVML_FI_DEV_NVLINK_GET_SPEED:
        return link->state ? give_uint(field, link->speed_mb_per_s) : NVML_ERROR_NOT_SUPPORTED;
    case NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY: return give_ull(field, link->replays);
    case NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY: return give_ull(field, link->recoveries);
    case NVML_FI_DEV_NVLINK_ERROR_DL_CRC: return give_ull(field, link->crc_errors);
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

static nvmlReturn_t remap_field(volatile corral_gpu_t *gpu, nvmlFieldValue_t *field)
{
    switch (field->fieldId) {
    case NVML_FI_DEV_REMAPPED_COR: return give_uint(field, gpu->remap_correctable);
    case NVML_FI_DEV_REMAPPED_UNC: return give_uint(field, gpu->remap_uncorrectable);
    case NVML_FI_DEV_REMAPPED_PENDING: return give_uint(field, gpu->remap_pending);
    default: return give_uint(field, gpu->remap_failed);
    }
}

static nvmlReturn_t gpu_field(volatile corral_gpu_t *gpu, nvmlFieldValue_t *field)
{
    int max = (int)gpu->temperature_max_c;
    int modern = gpu->link_count && gpu->links[0].version >= 5;
    switch (field->fieldId) {
    case NVML_FI_DEV_ECC_CURRENT: return give_uint(field, gpu->ecc_mode);
    case NVML_FI_DEV_ECC_PENDING: return give_uint(field, gpu->ecc_mode_pending);
    case NVML_FI_DEV_ECC_SBE_VOL_TOTAL: return give_ull(field, gpu->ecc_dram_corrected + gpu->ecc_sram_corrected);
    case NVML_FI_DEV_ECC_DBE_VOL_TOTAL: return give_ull(field, gpu->ecc_dram_uncorrected + gpu->ecc_sram_uncorrected);
    case NVML_FI_DEV_ECC_SBE_AGG_TOTAL:
        return give_ull(field, gpu->ecc_dram_corrected_lifetime + gpu->ecc_sram_corrected_lifetime);
    case NVML_FI_DEV_ECC_DBE_AGG_TOTAL:
        return give_ull(field, gpu->ecc_dram_uncorrected_lifetime + gpu->ecc_sram_uncorrected_lifetime);
    case NVML_FI_DEV_PERF_POLICY_POWER: return give_ull(field, gpu->power_violation_ns);
    case NVML_FI_DEV_PERF_POLICY_THERMAL: return give_ull(field, gpu->thermal_violation_ns);
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN: return give_ull(field, gpu->sw_thermal_ns);
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN: return give_ull(field, gpu->hw_thermal_ns);
    case NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN: return give_ull(field, gpu->power_brake_ns);
    case NVML_FI_DEV_MEMORY_TEMP: return give_uint(field, gpu->memory_temperature_c);
    case NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION:
    case NVML_FI_DEV_ENERGY: return give_ull(field, gpu->energy_mj);
    case NVML_FI_DEV_POWER_AVERAGE:
    case NVML_FI_DEV_POWER_INSTANT: return give_uint(field, gpu->power_mw);
    case NVML_FI_DEV_NVLINK_LINK_COUNT: return give_uint(field, gpu->link_count);
    case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX:
        return modern ? NVML_ERROR_NOT_SUPPORTED : give_ull(field, gpu->nvlink_tx_kib);
    case NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX:
        return modern ? NVML_ERROR_NOT_SUPPORTED : give_ull(field, gpu->nvlink_rx_kib);
    case NVML_FI_DEV_POWER_MIN_LIMIT: return give_uint(field, gpu->power_limit_min_mw);
    case NVML_FI_DEV_POWER_MAX_LIMIT:
    case NVML_FI_DEV_POWER_DEFAULT_LIMIT: return give_uint(field, gpu->power_limit_max_mw);
    case NVML_FI_DEV_POWER_CURRENT_LIMIT:
    case NVML_FI_DEV_POWER_REQUESTED_LIMIT: return give_uint(field, gpu->power_limit_mw);
    case NVML_FI_DEV_REMAPPED_COR:
    case NVML_FI_DEV_REMAPPED_UNC:
    case NVML_FI_DEV_REMAPPED_PENDING:
    case NVML_FI_DEV_REMAPPED_FAILURE:
        if (gpu->mig_mode && gpu->instance_count) return NVML_ERROR_NOT_SUPPORTED;
        return remap_field(gpu, field);
    case NVML_FI_DEV_TEMPERATURE_SHUTDOWN_TLIMIT: return give_int(field, max - (int)gpu->temperature_shutdown_c);
    case NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT: return give_int(field, max - (int)gpu->temperature_slowdown_c);
    case NVML_FI_DEV_TEMPERATURE_GPU_MAX_TLIMIT: return give_int(field, 0);
    case NVML_FI_DEV_GET_GPU_RECOVERY_ACTION: return give_uint(field, gpu->recovery_action);
    default: return link_field(gpu, field);
    }
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields)
{
    ENTER(device, fields);
    struct timeval now;
    if (count <= 0) return NVML_ERROR_INVALID_ARGUMENT;
    gettimeofday(&now, NULL);
    for (int at = 0; at < count; at++) {
        fields[at].timestamp = now.tv_sec * 1000000LL + now.tv_usec;
        fields[at].latencyUsec = 5;
        fields[at].nvmlReturn = gpu->bad_field && fields[at].fieldId == gpu->bad_field ? (nvmlReturn_t)gpu->bad_code
                                                                                       : gpu_field(gpu, &fields[at]);
    }
    return NVML_SUCCESS;
}

/* The one link that a call is about. */
static nvmlReturn_t enter_link(nvmlDevice_t device, unsigned number, void *out, volatile corral_link_t **link)
{
    ENTER(device, out);
    if (number >= gpu->link_count) return NVML_ERROR_INVALID_ARGUMENT;
    *link = &gpu->links[number];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int number, nvmlEnableState_t *out)
{
    volatile corral_link_t *link;
    nvmlReturn_t entered = enter_link(device, number, out, &link);
    if (entered == NVML_SUCCESS) *out = (nvmlEnableState_t)link->state;
    return entered;
}

nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t device, unsigned int number, unsigned int *out)
{
    volatile corral_link_t *link;
    nvmlReturn_t entered = enter_link(device, number, out, &link);
    if (entered == NVML_SUCCESS) *out = link->version;
    return entered;
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int number, nvmlNvLinkErrorCounter_t counter,
                                             unsigned long long *out)
{
    volatile corral_link_t *link;
    nvmlReturn_t entered = enter_link(device, number, out, &link);
    if (entered != NVML_SUCCESS) return entered;
    switch (counter) {
    case NVML_NVLINK_ERROR_DL_REPLAY: *out = link->replays; return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_DL_RECOVERY: *out = link->recoveries; return NVML_SUCCESS;
    case NVML_NVLINK_ERROR_DL_CRC_FLIT: *out = link->crc_errors; return NVML_SUCCESS;
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t *out)
{
    ENTER(device, out);
    if (out->version != nvmlGpuFabricInfo_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH; /* the newest of R565 */
    nvmlGpuFabricInfo_v2_t *info = (nvmlGpuFabricInfo_v2_t *)(void *)out;
    memset(info->clusterUuid, 0, sizeof info->clusterUuid);
    info->status = (nvmlReturn_t)gpu->fabric_status;
    info->cliqueId = 0;
    info->state = (nvmlGpuFabricState_t)gpu->fabric_state;
    info->healthMask = gpu->fabric_health_mask;
    return NVML_SUCCESS;
}
