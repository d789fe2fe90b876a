/* GPM: two samples, and metrics over the time between them. Only numMetrics entries are touched: the array
 * behind them is longer in newer headers while its version stayed 1. */
#include "fake.h"

#include <math.h>
#include <stdlib.h>

struct nvmlGpmSample_st {
    int taken;
    double graphics, sm_active, sm_occupancy, tensor, dram; /* percent */
    double tx, rx;                                           /* MiB/s */
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *out)
{
    ENTER(device, out);
    if (out->version != NVML_GPM_SUPPORT_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    out->isSupportedDevice = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    if (sample == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *sample = calloc(1, sizeof **sample);
    return *sample == NULL ? NVML_ERROR_MEMORY : NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample)
{
    free(sample);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    ENTER(device, sample);
    sample->taken = 1;
    sample->graphics = gpu->graphics_percent;
    sample->sm_active = gpu->sm_active_percent;
    sample->sm_occupancy = gpu->sm_occupancy_percent;
    sample->tensor = gpu->tensor_percent;
    sample->dram = gpu->dram_percent;
    sample->tx = gpu->pcie_tx_kb_per_s / 1024.0;
    sample->rx = gpu->pcie_rx_kb_per_s / 1024.0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int instance, nvmlGpmSample_t sample)
{
    ENTER(device, sample);
    for (unsigned at = 0; gpu->mig_mode && at < gpu->instance_count; at++) {
        if (gpu->instances[at].gi != instance) continue;
        *sample = (struct nvmlGpmSample_st){.taken = 1, .sm_active = gpu->instances[at].sm_active_percent};
        return NVML_SUCCESS;
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

static double pick(const struct nvmlGpmSample_st *sample, unsigned metric)
{
    switch (metric) {
    case NVML_GPM_METRIC_GRAPHICS_UTIL: return sample->graphics;
    case NVML_GPM_METRIC_SM_UTIL: return sample->sm_active;
    case NVML_GPM_METRIC_SM_OCCUPANCY: return sample->sm_occupancy;
    case NVML_GPM_METRIC_ANY_TENSOR_UTIL: return sample->tensor;
    case NVML_GPM_METRIC_DRAM_BW_UTIL: return sample->dram;
    case NVML_GPM_METRIC_PCIE_TX_PER_SEC: return sample->tx;
    case NVML_GPM_METRIC_PCIE_RX_PER_SEC: return sample->rx;
    default: return NAN;
    }
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get)
{
    if (get == NULL || get->sample1 == NULL || get->sample2 == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t entered = enter();
    if (entered != NVML_SUCCESS) return entered;
    if (get->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (!get->sample1->taken || !get->sample2->taken) return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned at = 0; at < get->numMetrics; at++) {
        nvmlGpmMetric_t *metric = &get->metrics[at];
        double value = (pick(get->sample1, metric->metricId) + pick(get->sample2, metric->metricId)) / 2;
        metric->nvmlReturn = isnan(value) ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
        metric->value = value;
        metric->metricInfo.shortName = metric->metricInfo.longName = metric->metricInfo.unit = NULL;
    }
    return NVML_SUCCESS;
}
