"""A supervisor in a process of its own, for tests that kill it: ``python host.py RUN_DIR BASE_PORT SPECS_JSON``.

With STEP ``before-record`` it dies as an agent would that is killed between the spawn and the record.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

import msgspec

from agent.replicas.launch import Launch, spawn_detached
from agent.replicas.supervisor import Supervisor
from tests.agent.replicas.node import FAKE
from vocab.clock import SystemClock
from vocab.messages import ReplicaSpec


def spawn_and_die(launch: Launch) -> int:
    spawn_detached(launch)
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def main() -> None:
    run_dir, base_port, specs, step = sys.argv[1:]
    spawn = spawn_and_die if step == "before-record" else spawn_detached
    supervisor = Supervisor(Path(run_dir), SystemClock(), int(base_port), node="n1", program=FAKE, spawn=spawn)
    supervisor.converge(msgspec.json.decode(specs, type=tuple[ReplicaSpec, ...]))
    asyncio.run(supervisor.run())


if __name__ == "__main__":
    main()
