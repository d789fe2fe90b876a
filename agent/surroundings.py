"""What is watched around the GPUs: the host, its services, and the checks of the node's owner."""

from agent.config import AgentConfig
from agent.sources.host import HostSource
from agent.sources.plugin import PluginSource
from agent.sources.service import ServiceSource
from agent.sources.source import Source
from vocab.clock import Clock


def around_gpus(config: AgentConfig, clock: Clock, services: ServiceSource) -> tuple[Source, ...]:
    """The sources of a real node beside its driver and its kernel log."""
    host = HostSource(config.node, config.state_dir, clock, ports=config.network_ports)
    return host, services, *owners_checks(config, clock)


def owners_checks(config: AgentConfig, clock: Clock) -> tuple[Source, ...]:
    """A source for each plug-in of the configuration; a virtual node has them too."""
    return tuple(PluginSource(config.node, plugin, clock) for plugin in config.plugins)
