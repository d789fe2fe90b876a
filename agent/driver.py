"""Who reads the driver on a real node: NVML, and DCGM beside it where there is one or the operator names one."""

from agent.config import AgentConfig
from agent.sources.dcgm.sight import OFF, DcgmSettings
from agent.sources.dcgm.source import DcgmSource
from agent.sources.nvml import NvmlSource
from vocab.clock import Clock


def dcgm_source(config: AgentConfig, clock: Clock) -> DcgmSource | None:
    """None if it is switched off."""
    if config.dcgm == OFF:
        return None
    settings = DcgmSettings(engine=config.dcgm, bindings=config.dcgm_bindings, profiling=config.dcgm_profiling)
    return DcgmSource(config.node, settings, config.run_dir, clock)


def nvml_source(config: AgentConfig, clock: Clock, dcgm: DcgmSource | None) -> NvmlSource:
    """NVML, completed by DCGM."""
    if dcgm is None:
        return NvmlSource(config.node, config.nvml_library, config.run_dir, clock)
    return NvmlSource(config.node, config.nvml_library, config.run_dir, clock, complete=dcgm.complete)
