"""Load generators of others against this engine, as their users run them: do they work without special care?

    python -m tests.bench.engine.clients [--requests 8] [--threads 1]

``vllm bench serve`` and ``guidellm run``, each in its own environment, against one replica; the lines of their reports
that say how many requests succeeded and how fast. Ends with 1 if one of them did not get all its answers.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.engine.contestants import running
from tests.bench.engine.environments import CACHE, MODEL, Missing, prepare

_TOLD = re.compile(r"(Successful|Failed) requests|Output token throughput|(Mean|Median|P99) (TTFT|TPOT|ITL)")
_ERROR = re.compile(r"error|traceback|failed", re.IGNORECASE)
CLIENT_S = 300.0


def vllm(base: str, requests: int) -> tuple[list[str], bool]:
    """vLLM's own bench client: (lines of its report, whether all requests succeeded)."""
    done = _run([CACHE / "vllm" / "bin" / "vllm", "bench", "serve", "--backend", "openai", "--base-url", base,
                 "--model", "bench", "--tokenizer", MODEL, "--dataset-name", "random", "--random-input-len", 32,
                 "--random-output-len", 16, "--num-prompts", requests, "--max-concurrency", 4,
                 "--ignore-eos"])  # fmt: skip
    lines = [" ".join(line.split()) for line in done.stdout.splitlines() if _TOLD.search(line)]
    return lines or _end(done), f"Successful requests: {requests}" in lines


def guidellm(base: str, requests: int) -> tuple[list[str], bool]:
    """guidellm, four streams: (lines of its report, whether all requests succeeded)."""
    done = _run([CACHE / "guidellm" / "bin" / "guidellm", "run",
                 "--backend", f"kind=openai_http,target={base},model=bench",
                 "--profile", "kind=concurrent,streams=4", "--constraint", f"kind=max_requests,count={requests}",
                 "--data", "kind=synthetic_text,prompt_tokens=64,output_tokens=16",
                 "--tokenizer", f"kind=huggingface_auto,model={MODEL}"])  # fmt: skip
    text = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout)
    rows = [line for line in text.splitlines() if re.search(r"concurrent.*\d", line)]
    return rows[:6] or _end(done), done.returncode == 0 and bool(rows)


def _run(command: list[object]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "VLLM_TARGET_DEVICE": "cpu", "HF_HUB_OFFLINE": "1", "COLUMNS": "200"}
    with tempfile.TemporaryDirectory() as folder:  # they leave reports where they run
        return subprocess.run([str(part) for part in command], cwd=folder, env=env, text=True, capture_output=True,
                              timeout=CLIENT_S)  # fmt: skip


def _end(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What a client without a report said last."""
    said = (done.stdout + done.stderr).splitlines()
    return [line for line in said if _ERROR.search(line)][-5:] or said[-5:]


def main() -> None:
    parser = argparse.ArgumentParser(description="Load generators of others against this engine.")
    parser.add_argument("--requests", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--nice", type=int, default=0)
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder, \
            running("ours", options.threads, Path(folder), options.nice) as engine:  # fmt: skip
        for name, client in (("vllm", vllm), ("guidellm", guidellm)):
            try:
                prepare(name)
            except Missing as why:
                print(f"{name}: not run, it cannot be installed here: {why}")
                continue
            lines, whole = client(engine.base, options.requests)
            failed |= not whole
            print(f"\n{name}: {'all requests answered' if whole else 'FAILED'}")
            print("\n".join(f"    {line}" for line in lines), flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
