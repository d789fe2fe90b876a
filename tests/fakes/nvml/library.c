/* The library itself: map the file, initialise, errors by name, versions, and the doors of all calls. */
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

volatile corral_node_t *node;
struct nvmlDevice_st devices[CORRAL_MAX_GPUS];
struct nvmlDevice_st mig_devices[CORRAL_MAX_GPUS][CORRAL_MAX_INSTANCES];
static int users; /* nvmlInit calls without their nvmlShutdown */

void pause_ms(unsigned milliseconds)
{
    struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000L};
    nanosleep(&time, NULL);
}

static volatile corral_node_t *map_state(void)
{
    static volatile corral_node_t *mapped; /* kept over shutdown, as a driver would be */
    const char *path = getenv("CORRAL_FAKE_NVML_STATE");
    if (mapped != NULL || path == NULL) return mapped;
    int file = open(path, O_RDWR | O_CLOEXEC);
    struct stat status;
    if (file < 0) return NULL;
    void *found = MAP_FAILED;
    if (fstat(file, &status) == 0 && (size_t)status.st_size == sizeof(corral_node_t))
        found = mmap(NULL, sizeof(corral_node_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (found == MAP_FAILED) return NULL;
    const corral_node_t *state = found;
    if (memcmp(state->magic, CORRAL_MAGIC, sizeof(state->magic)) != 0 || state->version != CORRAL_VERSION) {
        fprintf(stderr, "fake libnvidia-ml: %s is not a virtual node of layout %d\n", path, CORRAL_VERSION);
        munmap(found, sizeof(corral_node_t));
        return NULL;
    }
    return mapped = found;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    volatile corral_node_t *state = map_state();
    if (state == NULL) return NVML_ERROR_DRIVER_NOT_LOADED;
    __atomic_add_fetch(&state->calls, 1, __ATOMIC_RELAXED);
    while (state->hang_init || state->hang) pause_ms(5);
    if (state->init_error) return (nvmlReturn_t)state->init_error;
    for (unsigned slot = 0; slot < CORRAL_MAX_GPUS; slot++) {
        devices[slot].slot = slot;
        for (unsigned at = 0; at < CORRAL_MAX_INSTANCES; at++)
            mig_devices[slot][at] = (struct nvmlDevice_st){.slot = slot, .instance = at + 1};
    }
    node = state;
    __atomic_add_fetch(&users, 1, __ATOMIC_SEQ_CST);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

nvmlReturn_t nvmlShutdown(void)
{
    if (node == NULL) return NVML_ERROR_UNINITIALIZED;
    if (__atomic_sub_fetch(&users, 1, __ATOMIC_SEQ_CST) == 0) node = NULL;
    return NVML_SUCCESS;
}

nvmlReturn_t enter(void)
{
    volatile corral_node_t *state = node;
    if (state == NULL) return NVML_ERROR_UNINITIALIZED;
    __atomic_add_fetch(&state->calls, 1, __ATOMIC_RELAXED);
    while (state->hang) pause_ms(5); /* the driver's global lock */
    return NVML_SUCCESS;
}

nvmlReturn_t enter_gpu(nvmlDevice_t device, volatile corral_gpu_t **gpu)
{
    nvmlReturn_t entered = enter();
    if (entered != NVML_SUCCESS) return entered;
    if (device < devices || device >= devices + node->gpu_count) return NVML_ERROR_INVALID_ARGUMENT;
    *gpu = &node->gpus[device->slot];
    __atomic_add_fetch(&(*gpu)->calls, 1, __ATOMIC_RELAXED);
    while ((*gpu)->hang) pause_ms(5);
    if ((*gpu)->removed) return NVML_ERROR_GPU_IS_LOST;
    return (nvmlReturn_t)(*gpu)->lost;
}

nvmlReturn_t enter_any(nvmlDevice_t device, volatile corral_gpu_t **gpu, volatile corral_instance_t **instance)
{
    *instance = NULL;
    if (device < mig_devices[0] || device >= mig_devices[0] + CORRAL_MAX_GPUS * CORRAL_MAX_INSTANCES)
        return enter_gpu(device, gpu);
    nvmlReturn_t entered = enter_gpu(&devices[device->slot], gpu);
    if (entered != NVML_SUCCESS) return entered;
    if (!(*gpu)->mig_mode || device->instance > (*gpu)->instance_count) return NVML_ERROR_INVALID_ARGUMENT; /* gone */
    *instance = &(*gpu)->instances[device->instance - 1];
    return NVML_SUCCESS;
}

nvmlReturn_t copy_text(volatile const char *text, char *out, unsigned length)
{
    unsigned used = 0;
    while (text[used] != '\0') used++;
    if (used + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned at = 0; at <= used; at++) out[at] = text[at];
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED: return "GPU requires reset";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return "Driver/library version mismatch";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    if (version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t entered = enter();
    return entered != NVML_SUCCESS ? entered : copy_text(node->driver, version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    volatile corral_node_t *state = map_state(); /* answers before initialisation, as the real one does */
    if (version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    return state == NULL ? NVML_ERROR_UNINITIALIZED : copy_text(state->library, version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    volatile corral_node_t *state = map_state();
    if (version == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    if (state == NULL) return NVML_ERROR_LIBRARY_NOT_FOUND;
    *version = (int)state->cuda;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}
