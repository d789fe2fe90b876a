"""One engine process from its first log line to its exit code."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from engine.api.server import application
from engine.api.service import Service
from engine.beat import beat_of
from engine.config import EngineConfig
from engine.files.location import locate
from engine.pulse import Pulse
from vocab.clock import SystemClock
from wire.notify import notify, watchdog_s
from wire.server import listen, read_token

if TYPE_CHECKING:
    from engine.loading import Loaded

log = logging.getLogger(__name__)

CLOSE_S = 5.0  # a step of the largest batch takes well under a second; one that takes longer hangs


def load_when_asked(config: EngineConfig) -> "Callable[[], Loaded]":
    """Loading, with its imports (torch takes seconds) inside the call."""

    def load() -> "Loaded":
        from engine.loading import load_model

        return load_model(config)

    return load


async def serve(config: EngineConfig, load: "Callable[[], Loaded]") -> tuple[int, bool]:
    """Run one replica until it is told to stop; (exit code, whether all its threads have ended).

    Raises ConfigError and ModelError.
    """
    locate(config.model)
    token = read_token(config.token_file)
    service = Service(config, load, SystemClock())
    _obey_signals(service)
    pulse = Pulse(config.beat, partial(beat_of, service))
    service.steps.after_step = service.on_change = pulse.write
    runner = await listen(application(service, token), config.listen, token=token, cancel_on_disconnect=True)
    log.info("listening", extra={"replica": config.replica, "address": runner.addresses[0], "model": config.model})
    pulse.start()
    service.start()
    watchdog = asyncio.create_task(_feed_watchdog(service))
    try:
        code = await service.until_over()
    finally:
        watchdog.cancel()
        await runner.cleanup()
        ended = service.steps.close(CLOSE_S if service.loaded else 0.0)  # loading is not waited for
        pulse.stop()
    log.info("stopped", extra={"exit_code": int(code)})
    if service.farewell:
        complain(service.farewell)  # the last line of the log: agents read it
    return code, ended


def _obey_signals(service: Service) -> None:
    """The first SIGTERM or SIGINT drains, the second cuts off."""
    loop = asyncio.get_running_loop()
    signals = iter((service.config.drain_s,))

    def stop() -> None:
        service.drain(leave=True, ttl_s=next(signals, 0.0), reason="signal")

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)


async def _feed_watchdog(service: Service) -> None:
    period_s = watchdog_s()
    while period_s is not None:
        if service.steps.alive:
            notify("WATCHDOG=1")
        await asyncio.sleep(period_s)


def complain(message: str) -> None:
    """One line for people, without a traceback."""
    sys.stderr.write(f"corral-engine: {message}\n")
    sys.stderr.flush()
