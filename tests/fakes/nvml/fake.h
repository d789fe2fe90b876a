/* A libnvidia-ml.so.1 that reads a virtual node's file ($CORRAL_FAKE_NVML_STATE) in place of a driver.
 *
 * Prototypes, structs and constants come from NVIDIA's nvml.h at build time; the file's layout from
 * layout.h. What is here must behave as nvml.h documents: versions of structs are checked, lost GPUs fail
 * every call, a hang switch blocks the caller. */
#ifndef CORRAL_FAKE_H
#define CORRAL_FAKE_H

#include <nvml.h>
#include "layout.h"

#define HIDDEN __attribute__((visibility("hidden")))

struct nvmlDevice_st {
    unsigned slot;
    unsigned instance; /* of a MIG device: 1 more than its place among the GPU's instances */
};

extern HIDDEN volatile corral_node_t *node; /* NULL until initialised */
extern HIDDEN struct nvmlDevice_st devices[CORRAL_MAX_GPUS];
extern HIDDEN struct nvmlDevice_st mig_devices[CORRAL_MAX_GPUS][CORRAL_MAX_INSTANCES];

/* Every call passes one of these: counts it, blocks while a hang switch is set, answers what fails it. */
HIDDEN nvmlReturn_t enter(void);
HIDDEN nvmlReturn_t enter_gpu(nvmlDevice_t device, volatile corral_gpu_t **gpu);
/* For the few calls that take a MIG device as well; instance is NULL where the device is a whole GPU. */
HIDDEN nvmlReturn_t enter_any(nvmlDevice_t device, volatile corral_gpu_t **gpu, volatile corral_instance_t **instance);

HIDDEN nvmlReturn_t copy_text(volatile const char *text, char *out, unsigned length);
HIDDEN void pause_ms(unsigned milliseconds);

#define ENTER(device, pointer)                                                                      \
    volatile corral_gpu_t *gpu;                                                                     \
    if ((pointer) == NULL) return NVML_ERROR_INVALID_ARGUMENT;                                      \
    nvmlReturn_t entered = enter_gpu((device), &gpu);                                               \
    if (entered != NVML_SUCCESS) return entered

#define ENTER_ANY(device, pointer)                                                                  \
    volatile corral_gpu_t *gpu;                                                                     \
    volatile corral_instance_t *instance;                                                           \
    if ((pointer) == NULL) return NVML_ERROR_INVALID_ARGUMENT;                                      \
    nvmlReturn_t entered = enter_any((device), &gpu, &instance);                                    \
    if (entered != NVML_SUCCESS) return entered

/* A call that gives one value of a GPU. */
#define GETTER(function, type, value)                                                               \
    nvmlReturn_t function(nvmlDevice_t device, type *out)                                           \
    {                                                                                               \
        ENTER(device, out);                                                                         \
        *out = (type)(value);                                                                       \
        return NVML_SUCCESS;                                                                        \
    }

/* A call that this board does not support. */
#define UNSUPPORTED(function, type)                                                                 \
    nvmlReturn_t function(nvmlDevice_t device, type *out)                                           \
    {                                                                                               \
        ENTER(device, out);                                                                         \
        return NVML_ERROR_NOT_SUPPORTED;                                                            \
    }

#define TEXT(function, text)                                                                        \
    nvmlReturn_t function(nvmlDevice_t device, char *out, unsigned int length)                      \
    {                                                                                               \
        ENTER(device, out);                                                                         \
        return copy_text((text), out, length);                                                      \
    }

#endif
