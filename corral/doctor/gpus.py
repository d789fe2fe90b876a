"""What the facts say of GPUs: bus, driver, kernel log, activity, DCGM, and the services that they need. Pure."""

from collections.abc import Iterator

from agent.probes.presence import same_version
from agent.sources.service import FABRIC
from corral.doctor.facts import Facts
from corral.doctor.finding import Finding, Verdict

OK, ABSENT, MISSING, WRONG, UNKNOWN = Verdict.OK, Verdict.ABSENT, Verdict.MISSING, Verdict.WRONG, Verdict.UNKNOWN

PERSISTENCED, IMEX = "nvidia-persistenced.service", "nvidia-imex.service"
OF_RACKS = ("GB200", "GB300")  # boards whose NVLink reaches over nodes: IMEX shares their memory
ACTIVITY = "sm_active_ratio"
LEAST_PACKAGE = (12, 535, 108)


def bus(facts: Facts) -> Iterator[Finding]:
    """What is on the bus, and what of it the driver lists."""
    if facts.virtual:
        yield Finding("GPUs", "virtual", OK, "this node's GPUs are made up: nothing of real ones is looked at")
        return
    if not facts.bus_gpus and not facts.gpus:
        how = "nothing to do if this node should have none; else see lspci -d 10de: and the firmware's settings"
        yield Finding("GPUs", "on the bus", MISSING, "there is no NVIDIA GPU on the PCI bus of this machine", how)
        return
    ours, listed = len(facts.bus_gpus) - facts.passed_on, len(facts.gpus)
    found = f"{ours} on the PCI bus, {listed} by the driver"
    if facts.passed_on:
        found += f", {facts.passed_on} given to virtual machines"
    if ours > listed:
        how = "a GPU is missing: see the kernel log (corral scan /var/log/kern.log), then reset it or reboot"
        yield Finding("GPUs", "seen", WRONG if listed else UNKNOWN, found, how if listed else "see the driver below")
    else:
        yield Finding("GPUs", "seen", OK, found)


def driver(facts: Facts) -> Iterator[Finding]:
    """Package, versions, device files, and what NVML says."""
    if not facts.bus_gpus and not facts.gpus:
        return
    if facts.package is None:
        how = "pip install 'corral[agent]' into the agent's environment"
        yield Finding("driver", "nvidia-ml-py", MISSING, "the Python package is not installed", how)
    elif _number(facts.package) < LEAST_PACKAGE:
        how = "pip install --upgrade 'nvidia-ml-py>=12.535.108'"
        yield Finding("driver", "nvidia-ml-py", WRONG, f"{facts.package} is too old", how)
    else:
        yield Finding("driver", "nvidia-ml-py", OK, facts.package)
    yield from _versions(facts)
    yield from _devices(facts)
    if facts.nvml_error:
        name, _, text = facts.nvml_error.partition(": ")
        yield Finding("driver", "NVML", WRONG, name, text)
    elif not facts.nvml_spoke:
        how = "the driver may hang: see the kernel log, and whether nvidia-smi answers; a reboot frees it"
        yield Finding("driver", "NVML", UNKNOWN, "it said nothing within the time", how)
    else:
        yield Finding("driver", "NVML", OK, f"{len(facts.gpus)} GPUs read")
    refused = sorted({name for gpu in facts.gpus for name in gpu.refused})
    if refused:
        how = "run the agent as a user who may read them; without them nothing is concluded from them"
        yield Finding("driver", "readings", MISSING, f"may not be read: {', '.join(refused)}", how)


def _versions(facts: Facts) -> Iterator[Finding]:
    if facts.module is None:
        yield Finding(
            "driver", "versions", MISSING, "the kernel driver is not loaded", "modprobe nvidia; see dmesg if it fails"
        )
    elif facts.library is not None and not same_version(facts.module, facts.library):
        found = f"kernel driver {facts.module}, library {facts.library}"
        how = "the driver was upgraded without a reload: drain the node, then reload the nvidia modules or reboot"
        yield Finding("driver", "versions", WRONG, found, how)
    else:
        yield Finding("driver", "versions", OK, f"kernel driver {facts.module}, library {facts.library or 'not asked'}")


def _devices(facts: Facts) -> Iterator[Finding]:
    shut = sorted(name for name, may in facts.devices.items() if not may)
    if shut:
        how = "NVreg_DeviceFileMode and the device cgroup decide; the agent's unit needs DeviceAllow=char-nvidia* rw"
        yield Finding("driver", "device files", WRONG, f"{facts.user} may not open {', '.join(shut)}", how)
    elif not facts.devices:
        how = "enable nvidia-persistenced, which makes them before the agent starts"
        yield Finding("driver", "device files", MISSING, "there is no /dev/nvidia*", how)
    else:
        yield Finding("driver", "device files", OK, f"{len(facts.devices)} may be opened")


def kernel_log(facts: Facts) -> Iterator[Finding]:
    """Whether the log of Xids can be read."""
    if facts.virtual:
        return
    how = "AmbientCapabilities=CAP_SYSLOG in the agent's unit (ours has it), or kernel.dmesg_restrict=0"
    if facts.kmsg_error is None:
        yield Finding("kernel log", "/dev/kmsg", OK, f"{facts.user} may read it")
    elif "cap_syslog" in (facts.unit_capabilities or ""):
        yield Finding("kernel log", "/dev/kmsg", OK, f"not for {facts.user}, but the agent's unit has CAP_SYSLOG")
    elif facts.journalctl:
        found = f"{facts.kmsg_error}: the journal is read in its place, without record numbers"
        yield Finding("kernel log", "/dev/kmsg", MISSING, found, how)
    else:
        yield Finding("kernel log", "/dev/kmsg", MISSING, f"{facts.kmsg_error}: no Xid will be seen", how)


def activity(facts: Facts) -> Iterator[Finding]:
    """Where SM, tensor and memory activity come from."""
    if not facts.gpus:
        return
    blind = [gpu for gpu in facts.gpus if ACTIVITY not in gpu.readings and not gpu.mig]
    if not blind:
        yield Finding("activity", "GPM", OK, "SM, tensor and memory activity come from NVML")
    else:
        names = ", ".join(sorted({gpu.name for gpu in blind}))
        by = "DCGM" if facts.dcgm_error is None and not facts.dcgm_off else None
        by = by or ("dcgm-exporter" if facts.exporter and not facts.exporter_error else None)
        found = f"{len(blind)} GPUs ({names}) give none by NVML, which has it from Hopper on"
        if by:
            yield Finding("activity", "GPM", ABSENT, f"{found}; {by} is there for it")
        else:
            how = "install DCGM (docs/dcgm.md), or name a running dcgm-exporter with dcgm_exporter"
            yield Finding("activity", "GPM", MISSING, found, how)
    if facts.profiling_needs_root and blind:
        how = "NVreg_RestrictProfilingToAdminUsers=0, or a host engine that runs as root"
        yield Finding("activity", "profiling lock", MISSING, "performance counters are for root only", how)


def dcgm(facts: Facts) -> Iterator[Finding]:
    """Whether DCGM can be used."""
    if not facts.gpus:
        return
    if facts.dcgm_off:
        yield Finding("DCGM", "host engine", ABSENT, 'switched off by dcgm = "off"')
    elif facts.dcgm_error is None:
        yield Finding("DCGM", "host engine", OK, "bindings and a running engine are there")
    else:
        name, _, text = facts.dcgm_error.partition(": ")
        yield Finding("DCGM", "host engine", MISSING, name, text)


def exporter(facts: Facts) -> Iterator[Finding]:
    """Whether a dcgm-exporter is read, or could be."""
    if facts.exporter is not None:
        if facts.exporter_error:
            name, _, text = facts.exporter_error.partition(": ")
            yield Finding("dcgm-exporter", facts.exporter, WRONG, name, text)
        else:
            yield Finding("dcgm-exporter", facts.exporter, OK, "its page is read")
    elif facts.exporter_unused:
        found = "one answers on 127.0.0.1:9400 and is not used"
        yield Finding(
            "dcgm-exporter", "port 9400", ABSENT, f'{found}; dcgm_exporter = "http://127.0.0.1:9400/metrics" does'
        )


def services(facts: Facts) -> Iterator[Finding]:
    """The services that these boards need."""
    if facts.services_error or not facts.gpus:
        return
    yield from _service(
        facts, PERSISTENCED, needed=True, why="without it counters restart whenever the last user leaves"
    )
    yield from _service(facts, FABRIC, needed=facts.bus_switches > 0, why="NVSwitch boards cannot be used without it")
    racks = any(word in gpu.name for gpu in facts.gpus for word in OF_RACKS)
    yield from _service(facts, IMEX, needed=racks, why="GPUs of other nodes of the rack cannot be reached without it")


def _service(facts: Facts, name: str, *, needed: bool, why: str) -> Iterator[Finding]:
    unit, short = facts.services.get(name), name.removesuffix(".service")
    if name == PERSISTENCED and facts.gpus and all(gpu.persistence == 1 for gpu in facts.gpus) and unit is None:
        yield Finding("services", short, OK, "not installed; persistence mode is on all the same")
    elif unit is None:
        found = "not installed"
        yield (
            Finding("services", short, MISSING, found, f"install it: {why}")
            if needed
            else Finding("services", short, ABSENT, f"{found}, and not needed here")
        )
    elif not unit.active:
        how = f"systemctl enable --now {short}: {why}"
        yield (
            Finding("services", short, WRONG, "not active", how)
            if needed
            else Finding("services", short, ABSENT, "not active, and not needed here")
        )
    else:
        yield Finding("services", short, OK, f"active, {unit.restarts or 0} restarts")


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdecimal())
