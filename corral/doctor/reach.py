"""Who answers this node: its controller, DCGM's host engine, a dcgm-exporter."""

import asyncio

import aiohttp

from agent.config import AgentConfig
from agent.sources.dcgm.sight import DcgmSettings, look
from agent.sources.exporter import ExporterSource
from corral.doctor.seen import Seen
from vocab.clock import SystemClock
from vocab.errors import CorralError
from wire.client import Client
from wire.server import read_token
from wire.tls import Contexts

KNOCK_S = 3.0
EXPORTER = "http://127.0.0.1:9400/metrics"  # where dcgm-exporter listens by itself


async def knock(config: AgentConfig) -> dict[str, object]:
    """Who answers: controller, DCGM's host engine, an exporter."""
    off = config.dcgm == "off"
    settings = DcgmSettings(engine=config.dcgm, bindings=config.dcgm_bindings, profiling=config.dcgm_profiling)
    sight, exporter, controller = await asyncio.gather(
        look(settings), _exporter(config.dcgm_exporter or EXPORTER), _controller(config)
    )
    return {
        "dcgm_off": off,
        "dcgm_error": sight.advice if sight.error and not off else None,
        "exporter": config.dcgm_exporter,
        "exporter_error": exporter if config.dcgm_exporter else None,
        "exporter_unused": config.dcgm_exporter is None and exporter is None,
        "controller": config.controller,
        "controller_error": controller,
    }


async def _exporter(url: str) -> str | None:
    """Why its page cannot be used."""
    seen = Seen()
    source = ExporterSource("doctor", url, SystemClock(), timeout_s=KNOCK_S)
    await seen.watch((source,), lambda: source.name in seen.states, 2 * KNOCK_S)
    return seen.error("exporter") if "exporter" in seen.states else "TIMEOUT: it did not answer"


async def _controller(config: AgentConfig) -> str | None:
    """Why the controller cannot be reached with our token and our trust."""
    try:
        shown = read_token(config.controller_token_file or config.token_file)
        async with Client(config.controller, token=shown, tls=Contexts(config.tls).client) as client:
            await client.fetch("GET", "/api/v1/replicas", timeout_s=KNOCK_S)  # what a node's token may read
    except (CorralError, OSError, aiohttp.ClientError) as error:
        return str(error)
    return None
