"""``python -m engine.gateway --config FILE``."""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

from engine.gateway.config import GatewayConfig
from engine.gateway.gateway import Gateway
from vocab.clock import SystemClock
from vocab.errors import ConfigError
from wire import logs
from wire.config import load

DEFAULT = Path("/etc/corral/gateway.toml")


async def serve(config: GatewayConfig) -> None:
    """Run until SIGTERM or SIGINT; a second one cuts off what is in flight."""
    stop, hurry = asyncio.Event(), asyncio.Event()

    def obey() -> None:
        (hurry if stop.is_set() else stop).set()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, obey)
    gateway = Gateway(config, SystemClock())
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, gateway.tls.renew)
    await gateway.run(stop, hurry)


def main() -> int:
    """Read the configuration and serve; the exit code."""
    parser = argparse.ArgumentParser(prog="corral-gateway", description="Sends requests to replicas that can take them")
    parser.add_argument("--config", type=Path, default=DEFAULT, help=f"TOML file (default {DEFAULT})")
    try:
        config = load(parser.parse_args().config, GatewayConfig)
        logs.set_up(json=config.log_json)
        asyncio.run(serve(config))
    except ConfigError as error:
        sys.stderr.write(f"corral-gateway: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
