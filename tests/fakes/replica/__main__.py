"""A replica without a model: a small real program that speaks the engine's API.

    python tests/fakes/replica --replica ID --listen 127.0.0.1:PORT --beat FILE [engine flags] [--rate N]

It takes the engine's flags (and ignores those that it does not need), streams tokens at a set rate, obeys
/drain and SIGTERM, and writes beats. POST /control makes it fail in ways; see misbehaviour.py.
"""

import argparse
import asyncio
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from service import Service  # type: ignore[import-not-found]  # the folder is run as a program


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fake-replica")
    parser.add_argument("--replica", required=True)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--beat", type=Path, required=True)
    parser.add_argument("--served-name", default="fake")
    parser.add_argument("--drain-s", type=float, default=120.0)
    parser.add_argument("--load-s", type=float, default=0.0, help="seconds until it is ready")
    parser.add_argument("--rate", type=float, default=200.0, help="tokens a second of each stream")
    parser.add_argument("--exit-code", type=int, help="end at once with this code, as a broken installation does")
    parser.add_argument("--deaf", action="store_true", help="ignore SIGTERM and /drain, as a wedged engine does")
    known, _ = parser.parse_known_args()
    return known


async def run(options: argparse.Namespace) -> int:
    service = Service(options)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, service.terminate)
    return await service.run()


if __name__ == "__main__":
    given = arguments()
    if given.exit_code is not None:
        print(f"fake-replica: ends with {given.exit_code} as told")
        raise SystemExit(given.exit_code)
    raise SystemExit(asyncio.run(run(given)))
