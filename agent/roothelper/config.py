"""The root helper's configuration: one TOML file that root alone may write. What is not in it cannot be asked for."""

from pathlib import Path

import msgspec

from agent.roothelper.requests import FABRIC_MANAGER, OWN_UNIT
from wire.config import load

# Who holds a GPU open on a usual node, in the order in which to stop them: who reads, then who keeps it awake.
SERVICES = (
    "dcgm-exporter.service",
    "nvidia-dcgm-exporter.service",
    "nvidia-dcgm.service",
    "nvidia-persistenced.service",
    FABRIC_MANAGER,  # only where a reset takes every GPU of the node
)


class HelperConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """See docs/repairs.md. ``user`` is the agent's; ``services`` are stopped in this order and started in reverse."""

    user: str = "corral-agent"
    agent_unit: str = OWN_UNIT  # only its main process is heard, not the replicas of the same user; "": any process
    services: tuple[str, ...] = SERVICES
    state_dir: Path = Path("/var/lib/corral/roothelper")
    pause_file: Path = Path("/etc/corral/PAUSE")
    idle_s: float = 30.0  # systemd starts it again for the next caller


def read(path: Path) -> HelperConfig:
    """The configuration; the defaults if there is no file. Raises ConfigError."""
    return load(path, HelperConfig) if path.exists() else HelperConfig()
