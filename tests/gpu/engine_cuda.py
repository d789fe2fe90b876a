"""The engine on a real GPU: the oracle's tokens, and tokens a second beside the CPU.

    python tests/gpu/engine_cuda.py

Needs a CUDA build of PyTorch and one visible GPU. Without them it says that it was not run and exits with 0.
"""

import json
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402 - the tree is put on the path first

from engine.core.sequence import Sampling, Sequence  # noqa: E402 - as above
from engine.loading import load_model  # noqa: E402 - as above
from tests.engine.core.test_runner import generate  # noqa: E402 - as above
from tests.engine.replica import settings  # noqa: E402 - as above

TIE = 1e-3


def agreement(device: str) -> tuple[int, int, float]:
    """Cases whose tokens equal the oracle's up to the first tie, all cases, and tokens a second over them."""
    oracle = json.loads((ROOT / "tests/data/oracle_smollm2.json").read_text())
    model = load_model(settings(Path("smollm2"), model="smollm2", kv_mib=512, device=device, dtype="float32"))
    wishes = [
        Sequence(case["name"], list(case["prompt_ids"]), Sampling(max_tokens=len(case["tokens"])), 0.0)
        for case in oracle["cases"]
    ]
    began = time.perf_counter()
    found = generate(model, wishes)
    took = time.perf_counter() - began
    good = 0
    for case, tokens in zip(oracle["cases"], found, strict=True):
        differ = next(
            (n for n, pair in enumerate(zip(tokens, case["tokens"], strict=True)) if pair[0] != pair[1]), None
        )
        good += differ is None or case["gaps"][differ] < TIE
    return good, len(wishes), sum(map(len, found)) / took


def main() -> None:
    """Print the table, or why there is none."""
    if not torch.cuda.is_available():
        print("not run: this PyTorch sees no CUDA device")
        return
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}")
    print("| device | cases right | tokens/s |\n|---|---|---|")
    for device in ("cuda", "cpu"):
        good, cases, speed = agreement(device)
        print(f"| {device} | {good} of {cases} | {speed:.0f} |")


if __name__ == "__main__":
    main()
