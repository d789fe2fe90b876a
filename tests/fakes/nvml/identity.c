/* Which GPUs there are, and what each is. */
#include "fake.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
    if (count == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t entered = enter();
    if (entered != NVML_SUCCESS) return entered;
    *count = 0;
    for (unsigned slot = 0; slot < node->gpu_count; slot++) *count += !node->gpus[slot].removed;
    return NVML_SUCCESS;
}

/* The handle of a slot; a lost GPU cannot be looked up anew. */
static nvmlReturn_t open_slot(unsigned slot, nvmlDevice_t *device)
{
    volatile corral_gpu_t *gpu;
    nvmlReturn_t entered = enter_gpu(&devices[slot], &gpu);
    if (entered == NVML_SUCCESS) *device = &devices[slot];
    return entered;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
    if (device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (node == NULL) return NVML_ERROR_UNINITIALIZED;
    for (unsigned slot = 0; slot < node->gpu_count; slot++) {
        if (node->gpus[slot].removed) continue;
        if (index-- == 0) return open_slot(slot, device);
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    if (uuid == NULL || device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (node == NULL) return NVML_ERROR_UNINITIALIZED;
    for (unsigned slot = 0; slot < node->gpu_count; slot++)
        if (!node->gpus[slot].removed && strcmp((const char *)node->gpus[slot].uuid, uuid) == 0)
            return open_slot(slot, device);
    return NVML_ERROR_NOT_FOUND;
}

static void print_bus(volatile corral_gpu_t *gpu, int digits, char *out, size_t length)
{
    snprintf(out, length, "%0*X:%02X:%02X.0", digits, gpu->pci_domain, gpu->pci_bus, gpu->pci_device);
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus, nvmlDevice_t *device)
{
    char longer[32], shorter[32];
    if (bus == NULL || device == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (node == NULL) return NVML_ERROR_UNINITIALIZED;
    for (unsigned slot = 0; slot < node->gpu_count; slot++) {
        volatile corral_gpu_t *gpu = &node->gpus[slot];
        print_bus(gpu, 8, longer, sizeof longer);
        print_bus(gpu, 4, shorter, sizeof shorter);
        if (!gpu->removed && (strcasecmp(bus, longer) == 0 || strcasecmp(bus, shorter) == 0))
            return open_slot(slot, device);
    }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index)
{
    ENTER(device, index);
    *index = 0;
    for (unsigned slot = 0; slot < device->slot; slot++) *index += !node->gpus[slot].removed;
    return NVML_SUCCESS;
}

TEXT(nvmlDeviceGetName, gpu->name)
TEXT(nvmlDeviceGetSerial, gpu->serial)
TEXT(nvmlDeviceGetVbiosVersion, gpu->vbios)
TEXT(nvmlDeviceGetBoardPartNumber, gpu->part_number)
TEXT(nvmlDeviceGetInforomImageVersion, "G520.0200.00.05")
GETTER(nvmlDeviceGetMinorNumber, unsigned int, gpu->minor)
GETTER(nvmlDeviceGetBrand, nvmlBrandType_t, NVML_BRAND_NVIDIA)
GETTER(nvmlDeviceGetPersistenceMode, nvmlEnableState_t, gpu->persistence)

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    ENTER(device, pci);
    memset(pci, 0, sizeof *pci);
    print_bus(gpu, 8, pci->busId, sizeof pci->busId);
    print_bus(gpu, 4, pci->busIdLegacy, sizeof pci->busIdLegacy);
    pci->domain = gpu->pci_domain;
    pci->bus = gpu->pci_bus;
    pci->device = gpu->pci_device;
    pci->pciDeviceId = gpu->pci_device_id;
    pci->pciSubSystemId = gpu->pci_subsystem_id;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version)
{
    ENTER(device, version);
    return copy_text(node->driver, version, NVML_GSP_FIRMWARE_VERSION_BUF_SIZE);
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *current, unsigned int *pending)
{
    ENTER(device, current);
    if (pending == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = gpu->mig_mode;
    return NVML_SUCCESS;
}


static nvmlReturn_t list_none(nvmlDevice_t device, unsigned int *count)
{
    ENTER(device, count);
    *count = 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out)
{
    ENTER(device, count);
    unsigned room = *count;
    *count = gpu->process_count;
    if (gpu->process_count == 0) return NVML_SUCCESS;
    if (room < gpu->process_count) return NVML_ERROR_INSUFFICIENT_SIZE;
    if (out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned at = 0; at < *count; at++) {
        out[at].pid = gpu->processes[at].pid;
        out[at].usedGpuMemory = gpu->processes[at].used_bytes;
        out[at].gpuInstanceId = out[at].computeInstanceId = 0xFFFFFFFF;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out)
{
    (void)out;
    return list_none(device, count);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *out)
{
    (void)out;
    return list_none(device, count);
}
