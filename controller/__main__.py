"""``python -m controller --config FILE``: run until SIGTERM or SIGINT."""

import argparse
import asyncio
import contextlib
import logging
import signal
import sys
from pathlib import Path

import uvloop

from controller import garbage
from controller.app import VERSION, Controller, controller
from controller.config import Config, read
from vocab.clock import SystemClock
from vocab.errors import CorralError
from wire import logs
from wire.notify import notify, watchdog_s

log = logging.getLogger("controller")

SWITCH_S = 0.0005  # a tenth of what is usual: beside a page that a thread writes, the loop waits so long at each read


async def _watchdog(every_s: float) -> None:
    """Say that the event loop turns. A wedged one is restarted by systemd; replicas do not notice."""
    while True:
        notify("WATCHDOG=1")
        await asyncio.sleep(every_s)


async def serve(config: Config) -> None:
    """Run until a signal comes. Raises ConfigError if it cannot start, or what ended the conductor."""
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with controller(config, SystemClock()) as made, made.running():
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, made.tls.renew)
        notify("READY=1")
        log.info("serving", extra={"listen": config.listen, "version": VERSION, "database": str(config.place)})
        await _until(stopped, made)
        notify("STOPPING=1")
        log.info("stopping")


async def _until(stopped: asyncio.Event, made: Controller) -> None:
    every_s = watchdog_s()
    watchdog = asyncio.create_task(_watchdog(every_s)) if every_s else None
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait([waiting, made.thinking], return_when=asyncio.FIRST_COMPLETED)
    for task in (watchdog, waiting):
        if task is not None:
            task.cancel()
    if made.thinking.done():
        made.thinking.result()


def main() -> int:
    """Read the configuration and serve; the exit code."""
    parser = argparse.ArgumentParser(prog="corral-controller", description="The control plane of Corral.")
    parser.add_argument("--config", required=True, type=Path, help="configuration file (TOML)")
    parser.add_argument("--version", action="version", version=VERSION)
    given = parser.parse_args()
    try:
        config = read(given.config)
        logs.set_up(json=config.log_json)
        garbage.set_aside()
        sys.setswitchinterval(SWITCH_S)
        with contextlib.suppress(KeyboardInterrupt):
            uvloop.run(serve(config))
    except CorralError as error:
        print(f"corral-controller: {error}", file=sys.stderr)  # noqa: T201 - the one line a wrong start prints
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
