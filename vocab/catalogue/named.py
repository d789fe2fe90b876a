"""The codes with names: what is not an Xid or SXid. Beside each: severity, recovery, scope, what clears it, source.

Severity and recovery are those of the plain case; the judge knows the harsher and milder ones (a power brake that has
lasted, a NIC that flapped once).
"""

from vocab.catalogue.persistence import outlives, remains
from vocab.catalogue.row import CodeRow
from vocab.events import Recovery, Scope, Severity
from vocab.states import ClearsOn

S, R, P, C = Severity, Recovery, Scope, ClearsOn
_Row = tuple[str, str, Severity, Recovery, Scope, ClearsOn | None, str]

# fmt: off
_GPU: tuple[_Row, ...] = (
    ("gpu_lost", "the driver no longer reaches the GPU", S.CRITICAL, R.REBOOT_NODE, P.GPU, C.REBOOT, "NVML 15"),
    ("gpu_missing", "a GPU of the inventory is not there", S.CRITICAL, R.REBOOT_NODE, P.GPU, C.SIGNAL, "inventory"),
    ("gpu_count_mismatch", "fewer GPUs than the node should have", S.CRITICAL, R.INVESTIGATE, P.NODE, C.SIGNAL,
     "inventory, PCI bus, configuration"),
    ("gpu_replaced", "another GPU sits at a known address", S.INFO, R.NONE, P.GPU, None, "UUID and serial number"),
    ("gpu_removed", "given to a virtual machine", S.INFO, R.NONE, P.GPU, None, "PCI bus: bound to vfio-pci"),
    ("gpu_requires_reset", "the driver wants a reset", S.CRITICAL, R.RESET_GPU, P.GPU, C.RESET, "NVML 16"),
    ("gpu_init_failed", "the driver could not start the GPU", S.CRITICAL, R.REBOOT_NODE, P.GPU, C.REBOOT,
     "RmInitAdapter; a probe that failed; NVML 8"),
    ("inforom_corrupted", "the board's own store is corrupted", S.WARNING, R.CONTACT_SUPPORT, P.GPU, C.SIGNAL,
     "NVML 14, nvidia-smi; NVIDIA's GPU operator has such a GPU replaced, DCGM sends it to triage"),
    ("recovery_action", "the driver advises an action", S.ERROR, R.INVESTIGATE, P.GPU, C.SIGNAL, "NVML field 230"),
    ("activity_contradiction", "busy by one counter, idle by the rest", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "utilization against power, clocks, SM and memory activity"),
    ("silent_corruption", "a check computed a wrong result", S.CRITICAL, R.CONTACT_SUPPORT, P.GPU, C.PERSON, "canary"),
    ("check_failed", "an active check found a problem", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "the check; its own pass ends it"),
    ("slow_gpu", "slower than its peers", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL, "comparison within a node"),
    ("lemon", "far more faults than its peers", S.WARNING, R.INVESTIGATE, P.GPU, C.PERSON, "ledger (Meta RSC study)"),
)
_MEMORY: tuple[_Row, ...] = (
    ("ecc_correctable_rate", "corrected ECC errors, sustained", S.WARNING, R.INVESTIGATE, P.GPU, C.RESET,
     "over 10 a second: DCGM's limit; over 100: error"),
    ("ecc_uncorrectable", "uncorrectable ECC errors since driver load", S.CRITICAL, R.DRAIN_AND_RESET, P.GPU, C.RESET,
     "NVML volatile counter; DCGM fails on it"),
    ("sram_threshold", "SRAM error threshold exceeded", S.CRITICAL, R.CONTACT_SUPPORT, P.GPU, C.PERSON,
     "NVML; DCGM 118"),
    ("remap_pending", "a row remap waits for a reset", S.WARNING, R.DRAIN_AND_RESET, P.GPU, C.RESET, "NVML field 144"),
    ("remap_failed", "a row could not be remapped", S.CRITICAL, R.CONTACT_SUPPORT, P.GPU, C.PERSON, "NVML field 145"),
    ("retired_pages", "retired pages near the limit", S.ERROR, R.CONTACT_SUPPORT, P.GPU, C.PERSON,
     "63 pages: DCGM's limit"),
)
_LINKS: tuple[_Row, ...] = (
    ("nvlink_down", "an NVLink that should be up is down", S.ERROR, R.RESET_GPU, P.LINK, C.SIGNAL, "NVML link state"),
    ("nvlink_errors", "NVLink error counters grow", S.WARNING, R.INVESTIGATE, P.LINK, C.SIGNAL, "NVML link counters"),
    ("nvlink_slow", "an NVLink slower than its GPU's others or its peers'", S.WARNING, R.INVESTIGATE, P.LINK, C.SIGNAL,
     "NVML link speed, within a node"),
    ("fabric_incomplete", "fabric registration not completed", S.ERROR, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "NVML fabric state"),
    ("fabric_unhealthy", "the fabric's health mask is bad", S.ERROR, R.INVESTIGATE, P.FABRIC, C.SIGNAL,
     "NVML health mask"),
    ("pcie_width", "fewer PCIe lanes than expected", S.ERROR, R.INVESTIGATE, P.GPU, C.SIGNAL, "NVML; DCGM 46"),
    ("pcie_generation", "PCIe slower than expected under load", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "NVML; DCGM 45"),
    ("pcie_replays", "PCIe replays grow", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "NVML counter; DCGM's rate per lane"),
    ("aer", "PCIe error reporting of the GPU or its port", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "kernel lines of AER, DPC, slots, and of firmware (APEI)"),
)
_HEAT: tuple[_Row, ...] = (
    ("thermal_slowdown", "clocks cut by heat", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "NVML reasons 0x20, 0x40, 0x8"),
    ("thermal_margin", "close to the slowdown threshold", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL, "NVML margin"),
    ("power_brake", "clocks cut by the external power brake", S.ERROR, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "NVML reason 0x80"),
    ("power_over_limit", "draws more than the enforced limit", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "NVML power and limit: a tenth over for two minutes"),
    ("power_limit_low", "enforced power limit under the default", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "NVML limits"),
)
_DRIVER: tuple[_Row, ...] = (
    ("probe_hung", "a driver call does not return", S.CRITICAL, R.REBOOT_NODE, P.GPU, C.SIGNAL,
     "table of driver calls"),
    ("probe_slow", "driver calls are slow", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL, "table of driver calls"),
    ("probe_degraded", "driver calls fail now and then", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL, "driver errors"),
    ("probe_incomplete", "samples are missing", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "samples against the period"),
    ("probe_permission", "a reading is refused", S.WARNING, R.INVESTIGATE, P.NODE, C.SIGNAL, "NVML 4, EPERM"),
    ("process_info_mismatch", "process list and memory disagree", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL, "NVML"),
    ("unknown_consumer", "memory used that no process owns", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL, "NVML"),
    ("driver_hang", "a process hangs in the driver, or crashed in it", S.ERROR, R.REBOOT_NODE, P.NODE, C.REBOOT,
     "processes in state D; kernel traces"),
    ("driver_library_mismatch", "library and kernel module differ", S.ERROR, R.REBOOT_NODE, P.NODE, C.SIGNAL,
     "NVML 18"),
    ("driver_not_loaded", "no driver is loaded", S.ERROR, R.INVESTIGATE, P.NODE, C.SIGNAL, "NVML 9"),
    ("version_drift", "another driver or VBIOS than the pool's", S.WARNING, R.INVESTIGATE, P.NODE, C.SIGNAL,
     "inventory"),
    ("profiling_broken", "activity counters read zero or fail", S.WARNING, R.INVESTIGATE, P.GPU, C.SIGNAL,
     "GPM, DCGM 1001-"),
    ("counter_saturated", "a counter stands at its end", S.WARNING, R.INVESTIGATE, P.NODE, C.SIGNAL, "counter width"),
    ("mig_reconfigured", "MIG instances have changed", S.INFO, R.NONE, P.GPU, None, "inventory"),
    ("mig_instance_missing", "a MIG instance is gone", S.ERROR, R.INVESTIGATE, P.MIG, C.SIGNAL, "inventory"),
    ("container_device_access_lost", "a container lost its GPU device", S.ERROR, R.RESTART_APP, P.REPLICA, C.SIGNAL,
     "NVML 999"),
)
_HOST: tuple[_Row, ...] = (
    ("memory_leak", "memory grows without work", S.WARNING, R.INVESTIGATE, P.PROCESS, C.SIGNAL, "process list"),
    ("memory_zombie", "a dead process still owns memory", S.ERROR, R.RESET_GPU, P.GPU, C.RESET, "process list"),
    ("stuck_in_kernel", "a process cannot be ended", S.ERROR, R.REBOOT_NODE, P.NODE, C.REBOOT, "processes in state D"),
    ("mce", "machine check of processor or memory", S.WARNING, R.INVESTIGATE, P.NODE, C.REBOOT,
     "kernel lines of mce, EDAC, and of firmware (APEI)"),
    ("oom_kill", "the kernel killed a process for memory", S.ERROR, R.INVESTIGATE, P.NODE, None, "kernel"),
    ("monitor_unreachable", "a source of readings is gone", S.WARNING, R.INVESTIGATE, P.NODE, C.SIGNAL, "source state"),
    ("kernel_records_lost", "kernel records were overwritten unread", S.WARNING, R.INVESTIGATE, P.NODE, None,
     "EPIPE, sequence"),
    ("kernel_clock_skew", "kernel stamps and wall clock differ", S.WARNING, R.NONE, P.NODE, C.REBOOT, "kernel stamps"),
    ("service_flapping", "a service restarts again and again", S.WARNING, R.INVESTIGATE, P.NODE, C.SIGNAL, "systemd"),
    ("nic_down", "a network port is down", S.ERROR, R.INVESTIGATE, P.NODE, C.SIGNAL, "port state"),
    ("nic_command_failed", "a network adapter refuses commands or answers none", S.WARNING, R.INVESTIGATE, P.NODE, None,
     "kernel lines of the adapter's driver"),
    ("nic_flap", "a network port goes up and down", S.WARNING, R.INVESTIGATE, P.NODE, C.SIGNAL, "link_downed counter"),
    ("disk_error", "a disk does not do what it is asked", S.ERROR, R.INVESTIGATE, P.NODE, None,
     "kernel lines of NVMe and the block layer"),
    ("filesystem_error", "a file system is damaged or takes no writes", S.ERROR, R.INVESTIGATE, P.NODE, C.REBOOT,
     "kernel lines of ext4, XFS and Btrfs"),
    ("node_unknown", "no report for three periods", S.WARNING, R.NONE, P.NODE, C.SIGNAL, "heartbeats"),
    ("node_lost", "two observers cannot reach the node", S.ERROR, R.INVESTIGATE, P.NODE, C.SIGNAL,
     "heartbeats, observers"),
    ("gpu_claimed_twice", "it lists a GPU that another node has", S.WARNING, R.INVESTIGATE, P.NODE, C.SIGNAL,
     "the inventories of two nodes; who has it keeps it while it is live and lists it"),
    ("other_remediator", "somebody else is at work on a node", S.WARNING, R.INVESTIGATE, P.NODE, C.SIGNAL,
     "labels, annotations, taints, drain reasons"),
    ("too_much_sick", "too much looks sick at once: doubt", S.ERROR, R.INVESTIGATE, P.FABRIC, C.PERSON,
     "share of the fleet"),
)
_REPLICA: tuple[_Row, ...] = (
    ("replica_stalled", "no step while work waits", S.ERROR, R.RESTART_APP, P.REPLICA, C.SIGNAL, "beat"),
    ("replica_died", "the process ended by itself", S.ERROR, R.RESTART_APP, P.REPLICA, C.SIGNAL, "exit"),
    ("replica_unhealthy", "answers fail", S.WARNING, R.INVESTIGATE, P.REPLICA, C.SIGNAL, "requests as users saw them"),
    ("replica_wrong_gpu", "runs on another GPU than it should", S.ERROR, R.RESTART_APP, P.REPLICA, C.SIGNAL,
     "process list"),
    ("replica_failed_cleanup", "gone, but its memory is not free", S.ERROR, R.INVESTIGATE, P.REPLICA, C.SIGNAL,
     "process list"),
    ("collective_timeout", "members wait for one another", S.ERROR, R.RESTART_APP, P.REPLICA, C.SIGNAL,
     "logs, activity"),
    ("crash_loop", "dies again and again", S.ERROR, R.INVESTIGATE, P.REPLICA, C.PERSON, "attempt budget"),
    ("placement_black_hole", "replicas die wherever this node takes them", S.ERROR, R.INVESTIGATE, P.NODE, C.PERSON,
     "exits"),
)
# fmt: on

_FIELDS: dict[str, tuple[str, ...]] = {
    "check_failed": ("check",),
    "aer": ("at", "severity"),  # what the link repeated by itself, and what was lost
    "fabric_unhealthy": ("message", "partition"),
    "nic_command_failed": ("message",),
    "disk_error": ("disk", "what"),
    "filesystem_error": ("disk", "what"),
    "kernel_records_lost": ("from",),
    "mce": ("cpu", "bank", "dimm", "page"),
    "nvlink_down": ("link",),
    "nvlink_errors": ("link",),
    "nvlink_slow": ("link",),
    "mig_instance_missing": ("instance",),
    "counter_saturated": ("nic",),
    "nic_down": ("nic",),
    "nic_flap": ("nic",),
    "monitor_unreachable": ("source",),
    "probe_permission": ("source",),
    "probe_hung": ("call",),
    "probe_slow": ("call",),
    "service_flapping": ("service",),
    "driver_hang": ("stuck_child", "suspect"),
    "oom_kill": ("pid",),
}
# nothing new would start there, or somebody's work would be in its way; what runs goes on
_BLOCKS = frozenset({"unknown_consumer", "driver_library_mismatch", "driver_not_loaded"})
_CERTAIN = frozenset({"gpu_lost", "gpu_requires_reset"})  # the driver itself says so of this one GPU

_DIFFERS: dict[str, str] = {
    "ecc_correctable_rate": "the vendor's health watch ignores corrected errors; a storm of them blinds the monitor",
    "nvlink_down": "the vendor's tool triages; a link that no reset trains again is a person's, as validation shows",
    "pcie_width": "the vendor's health watch fails it; the GPU serves on, if slower, and only a person can reseat it",
    "remap_failed": "the vendor's tools disagree (reset or field diagnostic); a bank without spares needs a person",
    "remap_pending": "EKS and others replace the machine; the repair works and waits for a reset at a quiet time",
}

NAMED: dict[str, CodeRow] = {
    code: CodeRow(
        code=code,
        title=title,
        severity=severity,
        recovery=recovery,
        scope=scope,
        certain=code in _CERTAIN,
        blocks=code in _BLOCKS,
        condition=clears_on is not None,
        clears_on=clears_on or ClearsOn.SIGNAL,
        outlives=outlives(code, clears_on),
        remains=remains(code),
        discriminator=_FIELDS.get(code, ()),
        differs=_DIFFERS.get(code),
        source=source,
    )
    for table in (_GPU, _MEMORY, _LINKS, _HEAT, _DRIVER, _HOST, _REPLICA)
    for code, title, severity, recovery, scope, clears_on, source in table
}
