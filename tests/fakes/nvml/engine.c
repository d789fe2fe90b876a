/* What a DCGM host engine asks a board for beside its readings, when it starts and when it is asked who is who. */
#include "fake.h"

#include <string.h>

#define HOPPER_MAJOR 9
#define BAR1_BYTES (128ULL << 30)
#define BAR1_USED_BYTES (2ULL << 20)
#define APPLICATION_SM_MHZ 1980

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    ENTER(device, major);
    if (minor == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *major = HOPPER_MAJOR;
    *minor = 0;
    return NVML_SUCCESS;
}

GETTER(nvmlDeviceGetArchitecture, nvmlDeviceArchitecture_t, NVML_DEVICE_ARCH_HOPPER)
GETTER(nvmlDeviceGetComputeMode, nvmlComputeMode_t, NVML_COMPUTEMODE_DEFAULT)
GETTER(nvmlDeviceGetVirtualizationMode, nvmlGpuVirtualizationMode_t, NVML_GPU_VIRTUALIZATION_MODE_NONE)
GETTER(nvmlDeviceGetBoardId, unsigned int, gpu->pci_domain << 16 | gpu->pci_bus << 8)
GETTER(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
GETTER(nvmlDeviceGetInforomConfigurationChecksum, unsigned int, 0x1B2C3D4E)
UNSUPPORTED(nvmlDeviceGetRetiredPagesPendingStatus, nvmlEnableState_t) /* rows are remapped since Ampere */

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, nvmlPageRetirementCause_t cause, unsigned int *count,
                                          unsigned long long *addresses, unsigned long long *timestamps)
{
    ENTER(device, count);
    (void)cause, (void)addresses, (void)timestamps;
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device)
{
    ENTER(device, device);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, nvmlInforomObject_t object, char *out, unsigned int length)
{
    ENTER(device, out);
    switch (object) {
    case NVML_INFOROM_OEM: return copy_text("2.1", out, length);
    case NVML_INFOROM_ECC: return copy_text("7.16", out, length);
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *out)
{
    ENTER(device, out);
    out->bar1Total = BAR1_BYTES;
    out->bar1Used = BAR1_USED_BYTES;
    out->bar1Free = BAR1_BYTES - BAR1_USED_BYTES;
    return NVML_SUCCESS;
}

/* Of a MIG device only; an instance's share is not modelled. */
nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *out)
{
    ENTER_ANY(device, out);
    if (instance == NULL) return NVML_ERROR_NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    out->gpuInstanceSliceCount = out->computeInstanceSliceCount = 1;
    out->memorySizeMB = instance->memory_total_bytes >> 20;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetApplicationsClock(nvmlDevice_t device, nvmlClockType_t kind, unsigned int *out)
{
    ENTER(device, out);
    switch (kind) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM: *out = APPLICATION_SM_MHZ; return NVML_SUCCESS;
    case NVML_CLOCK_MEM: *out = gpu->memory_mhz; return NVML_SUCCESS;
    default: return NVML_ERROR_NOT_SUPPORTED;
    }
}

/* Encoders and decoders rest: nothing here decodes video. */
static nvmlReturn_t resting(nvmlDevice_t device, unsigned int *utilization, unsigned int *period_us)
{
    ENTER(device, utilization);
    if (period_us == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *utilization = 0;
    *period_us = 167000;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned int *utilization, unsigned int *period_us)
{
    return resting(device, utilization, period_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned int *utilization, unsigned int *period_us)
{
    return resting(device, utilization, period_us);
}

/* Two sockets: the first half of the GPUs hangs on one, the rest on the other. */
nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t device, nvmlDevice_t other, nvmlGpuTopologyLevel_t *out)
{
    ENTER(device, out);
    volatile corral_gpu_t *second;
    nvmlReturn_t there = enter_gpu(other, &second);
    if (there != NVML_SUCCESS) return there;
    unsigned half = (node->gpu_count + 1) / 2;
    if (device->slot == other->slot) *out = NVML_TOPOLOGY_INTERNAL;
    else *out = (device->slot < half) == (other->slot < half) ? NVML_TOPOLOGY_NODE : NVML_TOPOLOGY_SYSTEM;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned int words, unsigned long *cpus)
{
    ENTER(device, cpus);
    if (words == 0) return NVML_ERROR_INVALID_ARGUMENT;
    memset(cpus, 0, words * sizeof *cpus);
    cpus[0] = device->slot < (node->gpu_count + 1) / 2 ? 0xFFFFFFFFUL : 0xFFFFFFFFUL << 32;
    return NVML_SUCCESS;
}

/* Every link of this board goes to an NVSwitch. */
nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link, nvmlIntNvLinkDeviceType_t *out)
{
    ENTER(device, out);
    if (link >= gpu->link_count) return NVML_ERROR_INVALID_ARGUMENT;
    *out = NVML_NVLINK_DEVICE_TYPE_SWITCH;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *out)
{
    ENTER(device, out);
    if (link >= gpu->link_count) return NVML_ERROR_INVALID_ARGUMENT;
    return NVML_ERROR_NOT_SUPPORTED; /* switches are not told apart since Hopper */
}

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned int link, nvmlNvLinkCapability_t what,
                                           unsigned int *out)
{
    ENTER(device, out);
    if (link >= gpu->link_count) return NVML_ERROR_INVALID_ARGUMENT;
    *out = what == NVML_NVLINK_CAP_P2P_SUPPORTED || what == NVML_NVLINK_CAP_VALID;
    return NVML_SUCCESS;
}
