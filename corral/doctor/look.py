"""Looks at a node: the agent's own sources run for some seconds, each in the way in which it never hangs.

What the doctor says of the driver is so what an agent would see of it. Nothing here waits without a deadline.
"""

import asyncio
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent.config import AgentConfig
from agent.sources.host import HostSource
from agent.sources.nvml import NvmlSource
from agent.sources.service import UNITS, ServiceSource
from corral.doctor.facts import Facts, SeenGpu
from corral.doctor.files import read_files
from corral.doctor.node import AGENT
from corral.doctor.reach import knock
from corral.doctor.seen import Seen
from vocab.clock import SystemClock
from vocab.observations import GpuSample
from vocab.readings import Readings

WITHIN_S = 12.0  # a driver without persistence wakes for some seconds; slow readings come within ten
REFUSED = frozenset({"NO_PERMISSION", "NOT_PERMISSIONED"})
NODE = "doctor"


async def look(
    config: AgentConfig, facts: Facts, *, within_s: float = WITHIN_S, environment: Mapping[str, str] | None = None
) -> Facts:
    """All facts of this node; ``facts`` has what is known of the configuration already.

    ``environment`` is added to that of the process in which the driver is asked.
    """
    clock, seen = SystemClock(), Seen()
    with tempfile.TemporaryDirectory(prefix="corral-doctor-") as folder:
        sources = (
            NvmlSource(NODE, config.nvml_library, Path(folder), clock, environment=dict(environment or {})),
            HostSource(NODE, config.state_dir, clock, ports=config.network_ports),
            ServiceSource(NODE, clock, units=(*UNITS, AGENT)),
        )
        _, files, reached = await asyncio.gather(
            seen.watch(sources, seen.is_enough, within_s), read_files(config), knock(config)
        )
    return msgspec.structs.replace(facts, **_of(seen), **files, **reached)


def _of(seen: Seen) -> dict[str, object]:
    """What the sources have said, as facts."""
    gpus = seen.inventory.gpus if seen.inventory else ()
    return {
        "library": seen.inventory.driver if seen.inventory else None,
        "nvml_error": seen.error("nvml"),
        "nvml_spoke": "nvml" in seen.states,
        "gpus": tuple(_gpu(gpu.uuid, gpu.name or "", seen.samples.get(gpu.uuid)) for gpu in gpus),
        "services": seen.units,
        "services_error": seen.error("service") if "service" in seen.states else "systemctl said nothing",
        "host": seen.host,
        "ports": seen.ports,
    }


def _gpu(uuid: str, name: str, sample: GpuSample | None) -> SeenGpu:
    readings = (sample.readings if sample else None) or Readings()
    errors = sample.errors if sample else {}
    return SeenGpu(
        uuid=uuid,
        name=name,
        readings=frozenset(key for key, value in msgspec.structs.asdict(readings).items() if value is not None),
        refused=tuple(sorted(key for key, error in errors.items() if error in REFUSED)),
        persistence=readings.persistence,
        mig=readings.mig_mode == 1,
    )


def defaults() -> AgentConfig:
    """What an agent would have without a file, for a node that has none yet."""
    folder = Path("/var/lib/corral/agent")
    return AgentConfig(node=NODE, controller="http://127.0.0.1:7400", state_dir=folder, run_dir=Path("/run/corral"))
