/* Made from agent/virtual/layout.py by: python -m agent.virtual.header > tests/fakes/nvml/layout.h */
#ifndef CORRAL_LAYOUT_H
#define CORRAL_LAYOUT_H
#include <stddef.h>
#include <stdint.h>

#define CORRAL_MAGIC "CORRALVN"
#define CORRAL_VERSION 3
#define CORRAL_MAX_GPUS 8
#define CORRAL_MAX_LINKS 18
#define CORRAL_MAX_PROCESSES 16
#define CORRAL_MAX_INSTANCES 7
#define CORRAL_LOG_SLOTS 512
#define CORRAL_EVENT_SLOTS 256

typedef struct {
    uint32_t state; /* 1 up, 0 down */
    uint32_t version; /* NVLink generation */
    uint32_t speed_mb_per_s; /* each way */
    uint32_t ber; /* NVLink 5: effective bit error rate in the driver's form; 0: none was measured */
    uint64_t crc_errors; /* since driver load or reset */
    uint64_t replays; /* since driver load or reset */
    uint64_t recoveries; /* since driver load or reset */
} corral_link_t;
_Static_assert(sizeof(corral_link_t) == 40, "corral_link_t");
_Static_assert(offsetof(corral_link_t, state) == 0, "corral_link_t.state");
_Static_assert(offsetof(corral_link_t, version) == 4, "corral_link_t.version");
_Static_assert(offsetof(corral_link_t, speed_mb_per_s) == 8, "corral_link_t.speed_mb_per_s");
_Static_assert(offsetof(corral_link_t, ber) == 12, "corral_link_t.ber");
_Static_assert(offsetof(corral_link_t, crc_errors) == 16, "corral_link_t.crc_errors");
_Static_assert(offsetof(corral_link_t, replays) == 24, "corral_link_t.replays");
_Static_assert(offsetof(corral_link_t, recoveries) == 32, "corral_link_t.recoveries");

typedef struct {
    uint32_t pid; /* of the host */
    uint32_t spare; /* keeps used_bytes aligned */
    uint64_t used_bytes; /* device memory */
} corral_process_t;
_Static_assert(sizeof(corral_process_t) == 16, "corral_process_t");
_Static_assert(offsetof(corral_process_t, pid) == 0, "corral_process_t.pid");
_Static_assert(offsetof(corral_process_t, spare) == 4, "corral_process_t.spare");
_Static_assert(offsetof(corral_process_t, used_bytes) == 8, "corral_process_t.used_bytes");

typedef struct {
    char uuid[48]; /* MIG-xxxxxxxx-... */
    uint32_t gi; /* number of the GPU instance */
    uint32_t ci; /* number of the compute instance in it */
    uint64_t memory_total_bytes;
    uint64_t memory_used_bytes;
    uint64_t sram_uncorrected; /* volatile */
    double sm_active_percent; /* GPM: of its own SMs */
} corral_instance_t;
_Static_assert(sizeof(corral_instance_t) == 88, "corral_instance_t");
_Static_assert(offsetof(corral_instance_t, uuid) == 0, "corral_instance_t.uuid");
_Static_assert(offsetof(corral_instance_t, gi) == 48, "corral_instance_t.gi");
_Static_assert(offsetof(corral_instance_t, ci) == 52, "corral_instance_t.ci");
_Static_assert(offsetof(corral_instance_t, memory_total_bytes) == 56, "corral_instance_t.memory_total_bytes");
_Static_assert(offsetof(corral_instance_t, memory_used_bytes) == 64, "corral_instance_t.memory_used_bytes");
_Static_assert(offsetof(corral_instance_t, sram_uncorrected) == 72, "corral_instance_t.sram_uncorrected");
_Static_assert(offsetof(corral_instance_t, sm_active_percent) == 80, "corral_instance_t.sm_active_percent");

typedef struct {
    char uuid[48]; /* GPU-xxxxxxxx-... */
    char serial[32]; /* board serial number */
    char name[64]; /* product name */
    char vbios[32]; /* version */
    char part_number[32]; /* board part number */
    uint32_t pci_domain;
    uint32_t pci_bus;
    uint32_t pci_device;
    uint32_t pci_device_id; /* device << 16 | vendor */
    uint32_t pci_subsystem_id;
    uint32_t minor; /* N of /dev/nvidiaN */
    uint32_t lost; /* 0, or the NVML code that every call on this GPU returns (15 GPU_IS_LOST) */
    uint32_t removed; /* 1: the device count shrinks by this GPU */
    uint32_t hang; /* 1: every call on this GPU blocks until this is 0 */
    uint32_t corrupt; /* 1: it computes wrong results, and nothing reports it */
    uint32_t spare; /* keeps heat_c aligned */
    uint32_t power_brake; /* 1: the chassis asserts the power-brake signal */
    uint32_t introduced; /* 1: the driver has printed its UUID and serial in this boot */
    uint32_t instance_count; /* MIG instances */
    uint32_t bad_field; /* NVML field that fails by itself; 0: none */
    uint32_t bad_code; /* the NVML code that it fails with */
    double heat_c; /* not 0: cooling has failed and the core sits at this temperature */
    uint64_t calls; /* NVML calls made on this GPU */
    double core_c; /* core temperature */
    double memory_c; /* memory temperature */
    double power_exact_w; /* board power */
    double energy_exact_j; /* since driver load */
    uint32_t temperature_c;
    uint32_t memory_temperature_c;
    uint32_t temperature_max_c; /* highest normal operating temperature */
    uint32_t temperature_slowdown_c;
    uint32_t temperature_shutdown_c;
    uint32_t power_mw; /* mean of the last second */
    uint32_t power_limit_mw; /* enforced */
    uint32_t power_limit_min_mw;
    uint32_t power_limit_max_mw;
    uint32_t sm_mhz;
    uint32_t sm_max_mhz;
    uint32_t memory_mhz;
    uint32_t utilization_percent; /* time in which a kernel ran */
    uint32_t memory_utilization_percent; /* time in which memory was read or written */
    uint32_t performance_state; /* 0 is the fastest */
    uint32_t persistence;
    uint64_t clock_reasons; /* mask of clock event reasons */
    uint64_t energy_mj; /* since driver load */
    uint64_t power_violation_ns; /* time below the wanted clocks for the power limit */
    uint64_t thermal_violation_ns; /* time below the wanted clocks for heat */
    uint64_t sw_thermal_ns; /* by the driver */
    uint64_t hw_thermal_ns; /* by the hardware */
    uint64_t power_brake_ns; /* by the power-brake signal */
    double graphics_percent; /* GPM metrics: mean since the step before */
    double sm_active_percent;
    double sm_occupancy_percent;
    double tensor_percent;
    double dram_percent;
    uint32_t pcie_tx_kb_per_s; /* KiB each second */
    uint32_t pcie_rx_kb_per_s; /* KiB each second */
    uint64_t memory_total_bytes;
    uint64_t memory_reserved_bytes; /* driver and firmware */
    uint64_t memory_used_bytes; /* without the reserved part */
    uint32_t ecc_mode;
    uint32_t ecc_mode_pending; /* after the next reset */
    uint64_t ecc_dram_corrected; /* volatile: since driver load or reset */
    uint64_t ecc_sram_corrected; /* volatile */
    uint64_t ecc_dram_uncorrected; /* volatile */
    uint64_t ecc_sram_uncorrected; /* volatile */
    uint64_t ecc_dram_corrected_lifetime; /* kept in the InfoROM */
    uint64_t ecc_sram_corrected_lifetime;
    uint64_t ecc_dram_uncorrected_lifetime;
    uint64_t ecc_sram_uncorrected_lifetime;
    uint32_t sram_threshold_exceeded; /* 1: replace the board */
    uint32_t remap_correctable; /* rows */
    uint32_t remap_uncorrectable; /* rows */
    uint32_t remap_pending; /* 1: a reset activates the remap */
    uint32_t remap_failed; /* 1: a row could not be remapped */
    uint32_t banks[5]; /* by spare rows left: all, high, partial, low, none */
    uint32_t pcie_generation;
    uint32_t pcie_generation_max;
    uint32_t pcie_width; /* lanes */
    uint32_t pcie_width_max; /* lanes */
    uint32_t pcie_replays; /* since driver load */
    uint32_t fabric_state; /* 3 completed */
    uint32_t fabric_status; /* NVML return code of the registration */
    uint32_t fabric_health_mask; /* two bits a flag */
    uint32_t recovery_action; /* 0 none, 1 reset, 2 reboot, ... */
    uint32_t mig_mode;
    uint32_t link_count;
    uint32_t process_count;
    uint64_t nvlink_tx_kib; /* payload of all links since driver load */
    uint64_t nvlink_rx_kib;
    corral_link_t links[18];
    corral_process_t processes[16];
    corral_instance_t instances[7];
} corral_gpu_t;
_Static_assert(sizeof(corral_gpu_t) == 2280, "corral_gpu_t");
_Static_assert(offsetof(corral_gpu_t, uuid) == 0, "corral_gpu_t.uuid");
_Static_assert(offsetof(corral_gpu_t, serial) == 48, "corral_gpu_t.serial");
_Static_assert(offsetof(corral_gpu_t, name) == 80, "corral_gpu_t.name");
_Static_assert(offsetof(corral_gpu_t, vbios) == 144, "corral_gpu_t.vbios");
_Static_assert(offsetof(corral_gpu_t, part_number) == 176, "corral_gpu_t.part_number");
_Static_assert(offsetof(corral_gpu_t, pci_domain) == 208, "corral_gpu_t.pci_domain");
_Static_assert(offsetof(corral_gpu_t, pci_bus) == 212, "corral_gpu_t.pci_bus");
_Static_assert(offsetof(corral_gpu_t, pci_device) == 216, "corral_gpu_t.pci_device");
_Static_assert(offsetof(corral_gpu_t, pci_device_id) == 220, "corral_gpu_t.pci_device_id");
_Static_assert(offsetof(corral_gpu_t, pci_subsystem_id) == 224, "corral_gpu_t.pci_subsystem_id");
_Static_assert(offsetof(corral_gpu_t, minor) == 228, "corral_gpu_t.minor");
_Static_assert(offsetof(corral_gpu_t, lost) == 232, "corral_gpu_t.lost");
_Static_assert(offsetof(corral_gpu_t, removed) == 236, "corral_gpu_t.removed");
_Static_assert(offsetof(corral_gpu_t, hang) == 240, "corral_gpu_t.hang");
_Static_assert(offsetof(corral_gpu_t, corrupt) == 244, "corral_gpu_t.corrupt");
_Static_assert(offsetof(corral_gpu_t, spare) == 248, "corral_gpu_t.spare");
_Static_assert(offsetof(corral_gpu_t, power_brake) == 252, "corral_gpu_t.power_brake");
_Static_assert(offsetof(corral_gpu_t, introduced) == 256, "corral_gpu_t.introduced");
_Static_assert(offsetof(corral_gpu_t, instance_count) == 260, "corral_gpu_t.instance_count");
_Static_assert(offsetof(corral_gpu_t, bad_field) == 264, "corral_gpu_t.bad_field");
_Static_assert(offsetof(corral_gpu_t, bad_code) == 268, "corral_gpu_t.bad_code");
_Static_assert(offsetof(corral_gpu_t, heat_c) == 272, "corral_gpu_t.heat_c");
_Static_assert(offsetof(corral_gpu_t, calls) == 280, "corral_gpu_t.calls");
_Static_assert(offsetof(corral_gpu_t, core_c) == 288, "corral_gpu_t.core_c");
_Static_assert(offsetof(corral_gpu_t, memory_c) == 296, "corral_gpu_t.memory_c");
_Static_assert(offsetof(corral_gpu_t, power_exact_w) == 304, "corral_gpu_t.power_exact_w");
_Static_assert(offsetof(corral_gpu_t, energy_exact_j) == 312, "corral_gpu_t.energy_exact_j");
_Static_assert(offsetof(corral_gpu_t, temperature_c) == 320, "corral_gpu_t.temperature_c");
_Static_assert(offsetof(corral_gpu_t, memory_temperature_c) == 324, "corral_gpu_t.memory_temperature_c");
_Static_assert(offsetof(corral_gpu_t, temperature_max_c) == 328, "corral_gpu_t.temperature_max_c");
_Static_assert(offsetof(corral_gpu_t, temperature_slowdown_c) == 332, "corral_gpu_t.temperature_slowdown_c");
_Static_assert(offsetof(corral_gpu_t, temperature_shutdown_c) == 336, "corral_gpu_t.temperature_shutdown_c");
_Static_assert(offsetof(corral_gpu_t, power_mw) == 340, "corral_gpu_t.power_mw");
_Static_assert(offsetof(corral_gpu_t, power_limit_mw) == 344, "corral_gpu_t.power_limit_mw");
_Static_assert(offsetof(corral_gpu_t, power_limit_min_mw) == 348, "corral_gpu_t.power_limit_min_mw");
_Static_assert(offsetof(corral_gpu_t, power_limit_max_mw) == 352, "corral_gpu_t.power_limit_max_mw");
_Static_assert(offsetof(corral_gpu_t, sm_mhz) == 356, "corral_gpu_t.sm_mhz");
_Static_assert(offsetof(corral_gpu_t, sm_max_mhz) == 360, "corral_gpu_t.sm_max_mhz");
_Static_assert(offsetof(corral_gpu_t, memory_mhz) == 364, "corral_gpu_t.memory_mhz");
_Static_assert(offsetof(corral_gpu_t, utilization_percent) == 368, "corral_gpu_t.utilization_percent");
_Static_assert(offsetof(corral_gpu_t, memory_utilization_percent) == 372, "corral_gpu_t.memory_utilization_percent");
_Static_assert(offsetof(corral_gpu_t, performance_state) == 376, "corral_gpu_t.performance_state");
_Static_assert(offsetof(corral_gpu_t, persistence) == 380, "corral_gpu_t.persistence");
_Static_assert(offsetof(corral_gpu_t, clock_reasons) == 384, "corral_gpu_t.clock_reasons");
_Static_assert(offsetof(corral_gpu_t, energy_mj) == 392, "corral_gpu_t.energy_mj");
_Static_assert(offsetof(corral_gpu_t, power_violation_ns) == 400, "corral_gpu_t.power_violation_ns");
_Static_assert(offsetof(corral_gpu_t, thermal_violation_ns) == 408, "corral_gpu_t.thermal_violation_ns");
_Static_assert(offsetof(corral_gpu_t, sw_thermal_ns) == 416, "corral_gpu_t.sw_thermal_ns");
_Static_assert(offsetof(corral_gpu_t, hw_thermal_ns) == 424, "corral_gpu_t.hw_thermal_ns");
_Static_assert(offsetof(corral_gpu_t, power_brake_ns) == 432, "corral_gpu_t.power_brake_ns");
_Static_assert(offsetof(corral_gpu_t, graphics_percent) == 440, "corral_gpu_t.graphics_percent");
_Static_assert(offsetof(corral_gpu_t, sm_active_percent) == 448, "corral_gpu_t.sm_active_percent");
_Static_assert(offsetof(corral_gpu_t, sm_occupancy_percent) == 456, "corral_gpu_t.sm_occupancy_percent");
_Static_assert(offsetof(corral_gpu_t, tensor_percent) == 464, "corral_gpu_t.tensor_percent");
_Static_assert(offsetof(corral_gpu_t, dram_percent) == 472, "corral_gpu_t.dram_percent");
_Static_assert(offsetof(corral_gpu_t, pcie_tx_kb_per_s) == 480, "corral_gpu_t.pcie_tx_kb_per_s");
_Static_assert(offsetof(corral_gpu_t, pcie_rx_kb_per_s) == 484, "corral_gpu_t.pcie_rx_kb_per_s");
_Static_assert(offsetof(corral_gpu_t, memory_total_bytes) == 488, "corral_gpu_t.memory_total_bytes");
_Static_assert(offsetof(corral_gpu_t, memory_reserved_bytes) == 496, "corral_gpu_t.memory_reserved_bytes");
_Static_assert(offsetof(corral_gpu_t, memory_used_bytes) == 504, "corral_gpu_t.memory_used_bytes");
_Static_assert(offsetof(corral_gpu_t, ecc_mode) == 512, "corral_gpu_t.ecc_mode");
_Static_assert(offsetof(corral_gpu_t, ecc_mode_pending) == 516, "corral_gpu_t.ecc_mode_pending");
_Static_assert(offsetof(corral_gpu_t, ecc_dram_corrected) == 520, "corral_gpu_t.ecc_dram_corrected");
_Static_assert(offsetof(corral_gpu_t, ecc_sram_corrected) == 528, "corral_gpu_t.ecc_sram_corrected");
_Static_assert(offsetof(corral_gpu_t, ecc_dram_uncorrected) == 536, "corral_gpu_t.ecc_dram_uncorrected");
_Static_assert(offsetof(corral_gpu_t, ecc_sram_uncorrected) == 544, "corral_gpu_t.ecc_sram_uncorrected");
_Static_assert(offsetof(corral_gpu_t, ecc_dram_corrected_lifetime) == 552, "corral_gpu_t.ecc_dram_corrected_lifetime");
_Static_assert(offsetof(corral_gpu_t, ecc_sram_corrected_lifetime) == 560, "corral_gpu_t.ecc_sram_corrected_lifetime");
_Static_assert(offsetof(corral_gpu_t, ecc_dram_uncorrected_lifetime) == 568, "corral_gpu_t.ecc_dram_uncorrected_lifetime");
_Static_assert(offsetof(corral_gpu_t, ecc_sram_uncorrected_lifetime) == 576, "corral_gpu_t.ecc_sram_uncorrected_lifetime");
_Static_assert(offsetof(corral_gpu_t, sram_threshold_exceeded) == 584, "corral_gpu_t.sram_threshold_exceeded");
_Static_assert(offsetof(corral_gpu_t, remap_correctable) == 588, "corral_gpu_t.remap_correctable");
_Static_assert(offsetof(corral_gpu_t, remap_uncorrectable) == 592, "corral_gpu_t.remap_uncorrectable");
_Static_assert(offsetof(corral_gpu_t, remap_pending) == 596, "corral_gpu_t.remap_pending");
_Static_assert(offsetof(corral_gpu_t, remap_failed) == 600, "corral_gpu_t.remap_failed");
_Static_assert(offsetof(corral_gpu_t, banks) == 604, "corral_gpu_t.banks");
_Static_assert(offsetof(corral_gpu_t, pcie_generation) == 624, "corral_gpu_t.pcie_generation");
_Static_assert(offsetof(corral_gpu_t, pcie_generation_max) == 628, "corral_gpu_t.pcie_generation_max");
_Static_assert(offsetof(corral_gpu_t, pcie_width) == 632, "corral_gpu_t.pcie_width");
_Static_assert(offsetof(corral_gpu_t, pcie_width_max) == 636, "corral_gpu_t.pcie_width_max");
_Static_assert(offsetof(corral_gpu_t, pcie_replays) == 640, "corral_gpu_t.pcie_replays");
_Static_assert(offsetof(corral_gpu_t, fabric_state) == 644, "corral_gpu_t.fabric_state");
_Static_assert(offsetof(corral_gpu_t, fabric_status) == 648, "corral_gpu_t.fabric_status");
_Static_assert(offsetof(corral_gpu_t, fabric_health_mask) == 652, "corral_gpu_t.fabric_health_mask");
_Static_assert(offsetof(corral_gpu_t, recovery_action) == 656, "corral_gpu_t.recovery_action");
_Static_assert(offsetof(corral_gpu_t, mig_mode) == 660, "corral_gpu_t.mig_mode");
_Static_assert(offsetof(corral_gpu_t, link_count) == 664, "corral_gpu_t.link_count");
_Static_assert(offsetof(corral_gpu_t, process_count) == 668, "corral_gpu_t.process_count");
_Static_assert(offsetof(corral_gpu_t, nvlink_tx_kib) == 672, "corral_gpu_t.nvlink_tx_kib");
_Static_assert(offsetof(corral_gpu_t, nvlink_rx_kib) == 680, "corral_gpu_t.nvlink_rx_kib");
_Static_assert(offsetof(corral_gpu_t, links) == 688, "corral_gpu_t.links");
_Static_assert(offsetof(corral_gpu_t, processes) == 1408, "corral_gpu_t.processes");
_Static_assert(offsetof(corral_gpu_t, instances) == 1664, "corral_gpu_t.instances");

typedef struct {
    uint64_t stamp; /* sequence number + 1; 0 while empty or being written */
    uint32_t length; /* bytes of text */
    uint32_t spare;
    char text[1008]; /* prio,seq,usec,flags;text and a newline, as /dev/kmsg gives it */
} corral_record_t;
_Static_assert(sizeof(corral_record_t) == 1024, "corral_record_t");
_Static_assert(offsetof(corral_record_t, stamp) == 0, "corral_record_t.stamp");
_Static_assert(offsetof(corral_record_t, length) == 8, "corral_record_t.length");
_Static_assert(offsetof(corral_record_t, spare) == 12, "corral_record_t.spare");
_Static_assert(offsetof(corral_record_t, text) == 16, "corral_record_t.text");

typedef struct {
    uint64_t stamp; /* event number + 1; 0 while empty or being written */
    uint64_t type; /* NVML event type bit */
    uint64_t value; /* the Xid, if that is the type */
    uint32_t gpu; /* slot of the GPU */
    uint32_t spare;
} corral_event_t;
_Static_assert(sizeof(corral_event_t) == 32, "corral_event_t");
_Static_assert(offsetof(corral_event_t, stamp) == 0, "corral_event_t.stamp");
_Static_assert(offsetof(corral_event_t, type) == 8, "corral_event_t.type");
_Static_assert(offsetof(corral_event_t, value) == 16, "corral_event_t.value");
_Static_assert(offsetof(corral_event_t, gpu) == 24, "corral_event_t.gpu");
_Static_assert(offsetof(corral_event_t, spare) == 28, "corral_event_t.spare");

typedef struct {
    char magic[8]; /* CORRALVN */
    uint32_t version; /* of this table */
    uint32_t size; /* bytes of the file */
    char node[64]; /* the node's name */
    char board[32]; /* key of the board table */
    char driver[32]; /* version */
    char library[32]; /* version of NVML */
    uint32_t cuda; /* 1000 * major + 10 * minor */
    uint32_t gpu_count; /* slots in use, removed GPUs included */
    char boot_id[40]; /* new at each boot of the virtual node */
    char machine_boot_id[40]; /* of the machine below, when the node booted */
    double boot_at; /* seconds since the epoch */
    double boot_monotonic_s; /* the machine's CLOCK_MONOTONIC at that time; may be negative */
    uint64_t generation; /* rises with each fault, reset, reboot and removal */
    uint32_t init_error; /* not 0: NVML code that initialisation returns (9 DRIVER_NOT_LOADED) */
    uint32_t hang; /* 1: every call of the library blocks until this is 0 */
    uint32_t hang_init; /* 1: initialisation blocks until this is 0 */
    uint32_t spare;
    uint64_t calls; /* NVML calls made, of all kinds */
    uint64_t log_next; /* sequence number of the next kernel record */
    uint64_t event_next; /* number of the next NVML event */
    corral_gpu_t gpus[8];
    corral_event_t events[256];
    corral_record_t log[512];
} corral_node_t;
_Static_assert(sizeof(corral_node_t) == 551048, "corral_node_t");
_Static_assert(offsetof(corral_node_t, magic) == 0, "corral_node_t.magic");
_Static_assert(offsetof(corral_node_t, version) == 8, "corral_node_t.version");
_Static_assert(offsetof(corral_node_t, size) == 12, "corral_node_t.size");
_Static_assert(offsetof(corral_node_t, node) == 16, "corral_node_t.node");
_Static_assert(offsetof(corral_node_t, board) == 80, "corral_node_t.board");
_Static_assert(offsetof(corral_node_t, driver) == 112, "corral_node_t.driver");
_Static_assert(offsetof(corral_node_t, library) == 144, "corral_node_t.library");
_Static_assert(offsetof(corral_node_t, cuda) == 176, "corral_node_t.cuda");
_Static_assert(offsetof(corral_node_t, gpu_count) == 180, "corral_node_t.gpu_count");
_Static_assert(offsetof(corral_node_t, boot_id) == 184, "corral_node_t.boot_id");
_Static_assert(offsetof(corral_node_t, machine_boot_id) == 224, "corral_node_t.machine_boot_id");
_Static_assert(offsetof(corral_node_t, boot_at) == 264, "corral_node_t.boot_at");
_Static_assert(offsetof(corral_node_t, boot_monotonic_s) == 272, "corral_node_t.boot_monotonic_s");
_Static_assert(offsetof(corral_node_t, generation) == 280, "corral_node_t.generation");
_Static_assert(offsetof(corral_node_t, init_error) == 288, "corral_node_t.init_error");
_Static_assert(offsetof(corral_node_t, hang) == 292, "corral_node_t.hang");
_Static_assert(offsetof(corral_node_t, hang_init) == 296, "corral_node_t.hang_init");
_Static_assert(offsetof(corral_node_t, spare) == 300, "corral_node_t.spare");
_Static_assert(offsetof(corral_node_t, calls) == 304, "corral_node_t.calls");
_Static_assert(offsetof(corral_node_t, log_next) == 312, "corral_node_t.log_next");
_Static_assert(offsetof(corral_node_t, event_next) == 320, "corral_node_t.event_next");
_Static_assert(offsetof(corral_node_t, gpus) == 328, "corral_node_t.gpus");
_Static_assert(offsetof(corral_node_t, events) == 18568, "corral_node_t.events");
_Static_assert(offsetof(corral_node_t, log) == 26760, "corral_node_t.log");

#endif
