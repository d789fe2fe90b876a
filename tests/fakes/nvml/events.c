/* Event sets: a registered GPU's new events wake the waiter; what happened before is not told. */
#include "fake.h"

#include <stdlib.h>
#include <time.h>

#define SUPPORTED                                                                                          \
    (nvmlEventTypeSingleBitEccError | nvmlEventTypeDoubleBitEccError | nvmlEventTypeXidCriticalError |     \
     nvmlEventTypePState | nvmlEventTypeClock | nvmlEventTypeGpuRecoveryAction)
#define POLL_MS 100 /* a driver sleeps until it is woken; a shared file can only be looked at */

struct nvmlEventSet_st {
    uint64_t next; /* number of the first event that was not looked at */
    unsigned long long wanted[CORRAL_MAX_GPUS];
};

GETTER(nvmlDeviceGetSupportedEventTypes, unsigned long long, SUPPORTED)

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    if (set == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t entered = enter();
    if (entered != NVML_SUCCESS) return entered;
    *set = calloc(1, sizeof **set);
    if (*set == NULL) return NVML_ERROR_MEMORY;
    (*set)->next = node->event_next;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set)
{
    if (set == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    free(set);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set)
{
    ENTER(device, set);
    if (types & ~(unsigned long long)nvmlEventTypeAll) return NVML_ERROR_INVALID_ARGUMENT;
    if (types & ~(unsigned long long)SUPPORTED) return NVML_ERROR_NOT_SUPPORTED;
    set->wanted[device->slot] |= types;
    return NVML_SUCCESS;
}

/* The next event that the set wants. */
static int take(nvmlEventSet_t set, nvmlEventData_t *out)
{
    while (set->next < node->event_next) {
        if (node->event_next - set->next > CORRAL_EVENT_SLOTS) set->next = node->event_next - CORRAL_EVENT_SLOTS;
        volatile corral_event_t *event = &node->events[set->next % CORRAL_EVENT_SLOTS];
        if (event->stamp != set->next + 1) return 0; /* being written */
        set->next++;
        if (event->gpu >= CORRAL_MAX_GPUS || !(set->wanted[event->gpu] & event->type)) continue;
        out->device = &devices[event->gpu];
        out->eventType = event->type;
        out->eventData = event->value;
        out->gpuInstanceId = out->computeInstanceId = 0xFFFFFFFF;
        return 1;
    }
    return 0;
}

static nvmlReturn_t lost_among(nvmlEventSet_t set)
{
    for (unsigned slot = 0; slot < node->gpu_count; slot++)
        if (set->wanted[slot] && (node->gpus[slot].lost || node->gpus[slot].removed)) return NVML_ERROR_GPU_IS_LOST;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *out, unsigned int timeout_ms)
{
    if (set == NULL || out == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned waited = 0, step;; waited += step) {
        nvmlReturn_t entered = waited == 0 ? enter() : NVML_SUCCESS;
        if (entered != NVML_SUCCESS) return entered;
        while (node->hang) pause_ms(5);
        if (take(set, out)) return NVML_SUCCESS; /* what was recorded comes before what is wrong */
        nvmlReturn_t lost = lost_among(set);
        if (lost != NVML_SUCCESS) return lost;
        if (waited >= timeout_ms) return NVML_ERROR_TIMEOUT;
        step = timeout_ms - waited < POLL_MS ? timeout_ms - waited : POLL_MS;
        pause_ms(step);
    }
}
