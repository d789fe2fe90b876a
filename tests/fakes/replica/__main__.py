"""A replica without a model: a small real program that speaks the engine's API.

    python tests/fakes/replica --replica ID --listen 127.0.0.1:PORT --beat FILE [engine flags] [--rate N]

It takes the engine's flags (and ignores those that it does not need), streams tokens at a set rate, obeys
/drain and SIGTERM, and writes beats. POST /control makes it fail in ways; see misbehaviour.py.
"""

import asyncio
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.fakes.replica.options import Options, parse
from tests.fakes.replica.service import Service


async def run(options: Options) -> int:
    service = Service(options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.terminate)
    return await service.run()


if __name__ == "__main__":
    given = parse()
    if given.exit_code is not None:
        print(f"fake-replica: ends with {given.exit_code} as told")
        raise SystemExit(given.exit_code)
    raise SystemExit(asyncio.run(run(given)))
