/* MIG: the instances of a GPU, and the devices that stand for them. */
#include "fake.h"

#include <string.h>

GETTER(nvmlDeviceGetMaxMigDeviceCount, unsigned int, CORRAL_MAX_INSTANCES)

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig)
{
    ENTER(device, mig);
    if (index >= CORRAL_MAX_INSTANCES) return NVML_ERROR_INVALID_ARGUMENT;
    if (!gpu->mig_mode || index >= gpu->instance_count) return NVML_ERROR_NOT_FOUND;
    *mig = &mig_devices[device->slot][index];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t *device)
{
    ENTER_ANY(mig, device);
    if (instance == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *device = &devices[mig->slot];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *out)
{
    ENTER_ANY(device, out);
    *out = instance != NULL;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *out)
{
    ENTER_ANY(device, out);
    if (instance == NULL) return NVML_ERROR_NOT_SUPPORTED;
    *out = instance->gi;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned int *out)
{
    ENTER_ANY(device, out);
    if (instance == NULL) return NVML_ERROR_NOT_SUPPORTED;
    *out = instance->ci;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, unsigned int length)
{
    ENTER_ANY(device, out);
    return copy_text(instance == NULL ? gpu->uuid : instance->uuid, out, length);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *out)
{
    ENTER_ANY(device, out);
    out->total = instance ? instance->memory_total_bytes : gpu->memory_total_bytes;
    out->used = instance ? instance->memory_used_bytes
                         : gpu->memory_used_bytes + gpu->memory_reserved_bytes; /* it does not tell them apart */
    out->free = out->total - out->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *out)
{
    ENTER_ANY(device, out);
    if (out->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    out->total = instance ? instance->memory_total_bytes : gpu->memory_total_bytes;
    out->reserved = instance ? 0 : gpu->memory_reserved_bytes;
    out->used = instance ? instance->memory_used_bytes : gpu->memory_used_bytes;
    out->free = out->total - out->reserved - out->used;
    return NVML_SUCCESS;
}
