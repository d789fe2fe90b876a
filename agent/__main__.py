"""``python -m agent --config FILE``. SIGTERM stops it cleanly; replicas live on."""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent import config as configuration
from agent.agent import Agent
from agent.config import AgentConfig
from agent.privileges import keep_to_ourselves
from vocab.clock import SystemClock
from vocab.errors import CorralError
from wire import logs

PROGRAM = "corral-agent"

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent; the exit code: 0 after a clean stop, 2 if it cannot serve its purpose."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Watches the GPUs of this node and runs its replicas.")
    parser.add_argument("--config", type=Path, required=True, help="the TOML file (see docs/install.md)")
    parser.add_argument("--dcgm-names", action="store_true", help="metrics also under the names of dcgm-exporter")
    chosen = parser.parse_args(arguments)
    try:
        config = configuration.read(chosen.config)
        if chosen.dcgm_names:
            config = msgspec.structs.replace(config, dcgm_names=True)
        logs.set_up(json=config.log_json)
        keep_to_ourselves()
        asyncio.run(_run(config))
    except CorralError as error:
        sys.stderr.write(f"{PROGRAM}: {error}\n")
        return error.exit_code
    return 0


async def _run(config: AgentConfig) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    while await _agent(config, loop).run(stop):
        log.warning("the virtual node has booted: the agent starts anew, as its service manager would start it")


def _agent(config: AgentConfig, loop: asyncio.AbstractEventLoop) -> Agent:
    agent = Agent(config, SystemClock())
    loop.add_signal_handler(signal.SIGHUP, agent.tls.renew)
    return agent


if __name__ == "__main__":
    sys.exit(main())
