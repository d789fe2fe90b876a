"""Who reads the driver on a real node: NVML, and beside it a DCGM engine and a dcgm-exporter where they are.

There is one sample a GPU, NVML's own; the others add to it what NVML does not give.
"""

from collections.abc import Callable

import msgspec

from agent.config import AgentConfig
from agent.sources.dcgm.sight import OFF, DcgmSettings
from agent.sources.dcgm.source import DcgmSource
from agent.sources.exporter import ExporterSource
from agent.sources.nvml import NvmlSource
from agent.sources.pci import on_bus
from vocab.clock import Clock
from vocab.observations import AnyObservation, NodeSeen


def dcgm_source(config: AgentConfig, clock: Clock) -> DcgmSource | None:
    """None if it is switched off."""
    if config.dcgm == OFF:
        return None
    settings = DcgmSettings(engine=config.dcgm, bindings=config.dcgm_bindings, profiling=config.dcgm_profiling)
    return DcgmSource(config.node, settings, config.run_dir, clock)


def exporter_source(config: AgentConfig, clock: Clock) -> ExporterSource | None:
    """None if none is named."""
    return ExporterSource(config.node, config.dcgm_exporter, clock) if config.dcgm_exporter is not None else None


def nvml_source(
    config: AgentConfig,
    clock: Clock,
    dcgm: DcgmSource | None,
    exporter: ExporterSource | None = None,
    booting: Callable[[], bool] = lambda: False,
) -> NvmlSource:
    """NVML; its inventory with what the PCI bus shows, its samples completed by DCGM first, for that is first hand.

    ``booting``: whether the node's start is not over, which its inventory says.
    """

    def started(observation: AnyObservation) -> AnyObservation:
        is_early = isinstance(observation, NodeSeen) and booting()
        return msgspec.structs.replace(observation, booting=True) if is_early else observation

    steps = [started, on_bus(), *(source.complete for source in (dcgm, exporter) if source is not None)]

    def complete(observation: AnyObservation) -> AnyObservation:
        for step in steps:
            observation = step(observation)
        return observation

    return NvmlSource(config.node, config.nvml_library, config.run_dir, clock, complete=complete)
