"""What was seen on a node: plain facts, without a judgement. None is always *could not be told*."""

from typing import Any

import msgspec


class SeenGpu(msgspec.Struct, frozen=True):
    """A GPU that the driver lists, and which of its readings came."""

    uuid: str
    name: str
    readings: frozenset[str] = frozenset()
    refused: tuple[str, ...] = ()  # readings that may not be read
    persistence: int | None = None
    mig: bool = False


class Unit(msgspec.Struct, frozen=True):
    """An installed systemd unit."""

    active: bool
    restarts: int | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All of them. Errors begin with a name and a colon, as the agent's sources print them."""

    user: str = ""
    config: str | None = None  # the file that was read
    config_error: str | None = None
    level: str | None = None
    virtual: bool = False
    package: str | None = None  # version of nvidia-ml-py
    module: str | None = None  # version of the loaded kernel driver
    library: str | None = None
    nvml_error: str | None = None
    nvml_spoke: bool = False  # whether it said anything within the time
    gpus: tuple[SeenGpu, ...] = ()
    bus_gpus: tuple[str, ...] = ()  # addresses of NVIDIA's display devices on the PCI bus
    bus_switches: int = 0
    passed_on: int = 0  # of these GPUs, those that a virtual machine holds
    devices: dict[str, bool] = {}  # files of the driver, and whether we may open them
    kmsg_error: str | None = None
    journalctl: bool = False
    unit_capabilities: str | None = None  # of the agent's unit
    programs: dict[str, str | None] = {}  # of plug-ins and active checks: why each cannot be run, if it cannot
    dcgm_error: str | None = None
    dcgm_off: bool = False
    profiling_needs_root: bool | None = None
    exporter: str | None = None  # the configured address
    exporter_error: str | None = None
    exporter_unused: bool = False  # one answers, and none is configured
    services: dict[str, Unit] = {}
    services_error: str | None = None
    state_dir: str | None = None
    state_writable: bool | None = None
    state_filesystem: str | None = None
    host: dict[str, Any] = {}  # readings of the host
    ports: dict[str, str | None] = {}  # network ports and their states
    controller: str | None = None
    controller_error: str | None = None
    helper: bool | None = None  # whether the root helper's socket is there
    units: bool = False  # replicas are to be units of systemd, which the root helper starts
