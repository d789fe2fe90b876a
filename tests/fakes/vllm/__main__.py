"""A vLLM without a model: the API, the metrics, the processes and the faults of vLLM 0.32.

    python tests/fakes/vllm serve MODEL --port N [--served-model-name X] [--tensor-parallel-size N]
        [--shutdown-timeout S] [--api-key K] [--clients DIR --gpus 0,1] [--load-s S] [--rate N]

As the real one it is a server with an engine core as its child and, with several GPUs, the core's workers: these
hold the GPUs of a virtual node by files in ``--clients``. POST /control makes it fail; see server.py.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from tests.fakes.vllm.options import parse
from tests.fakes.vllm.server import Server

if __name__ == "__main__":
    raise SystemExit(asyncio.run(Server(parse(sys.argv[1:])).run()))
