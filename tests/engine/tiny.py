"""A model of the Llama family that fits into a thought: random weights, 270 tokens, on disk as real models are.

The weights come from numpy's PCG64, so the oracle's transformers and the engine read the same folder, made anew
wherever it is needed. Needs numpy, safetensors and tokenizers only.
"""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

SPECIALS = ("<|end|>", "<|im_start|>", "<|im_end|>")
MERGES = (("t", "h"), ("th", "e"), ("a", "n"), ("Ġ", "t"), ("i", "n"), ("e", "r"), ("o", "n"))
ALPHABET = sorted(pre_tokenizers.ByteLevel.alphabet())
TOKENS = [*SPECIALS, *ALPHABET, *(left + right for left, right in MERGES)]
VOCAB = 272  # a little more than there are tokens, as real models have

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def config(family: str = "llama", **changes: Any) -> dict[str, Any]:
    """A config.json."""
    return {
        "model_type": family,
        "architectures": [{"llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM", "qwen2": "Qwen2ForCausalLM",
                           "qwen3": "Qwen3ForCausalLM"}[family]],
        "vocab_size": VOCAB,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "attention_bias": False,
        "eos_token_id": 0,
        "bos_token_id": None,
        "torch_dtype": "float32",
        **changes,
    }  # fmt: skip


def shapes(settings: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tensors of a model folder."""
    hidden, inner, dim = settings["hidden_size"], settings["intermediate_size"], settings["head_dim"]
    q, kv = settings["num_attention_heads"] * dim, settings["num_key_value_heads"] * dim
    found = {"model.embed_tokens.weight": (settings["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    if not settings["tie_word_embeddings"]:
        found["lm_head.weight"] = (settings["vocab_size"], hidden)
    for layer in range(settings["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        for name, rows in (("q", q), ("k", kv), ("v", kv)):
            found[f"{at}self_attn.{name}_proj.weight"] = (rows, hidden)
            if settings["model_type"] == "qwen2":
                found[f"{at}self_attn.{name}_proj.bias"] = (rows,)
        if settings["model_type"] == "qwen3":
            found |= {f"{at}self_attn.q_norm.weight": (dim,), f"{at}self_attn.k_norm.weight": (dim,)}
        found |= {
            f"{at}self_attn.o_proj.weight": (hidden, q),
            f"{at}mlp.gate_proj.weight": (inner, hidden),
            f"{at}mlp.up_proj.weight": (inner, hidden),
            f"{at}mlp.down_proj.weight": (hidden, inner),
            f"{at}input_layernorm.weight": (hidden,),
            f"{at}post_attention_layernorm.weight": (hidden,),
        }
    return found


def tensors(settings: dict[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Random weights, large enough that the logits of two tokens rarely come close."""
    random = np.random.Generator(np.random.PCG64(seed))
    made = {}
    for name, shape in shapes(settings).items():
        values = random.standard_normal(shape, dtype=np.float32)
        scale = 1.6 / math.sqrt(shape[-1])
        made[name] = 1 + 0.1 * values if "norm" in name else values * (1.0 if "embed" in name else scale)
    return {name: array.astype(np.float32) for name, array in made.items()}


def tokenizer() -> Tokenizer:
    """Byte-level BPE with a few merges."""
    vocab = {token: number for number, token in enumerate(TOKENS)}
    made = Tokenizer(models.BPE(vocab=vocab, merges=list(MERGES)))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIALS])
    return made


def write_model(folder: Path, settings: dict[str, Any] | None = None, *, seed: int = 0, shards: int = 1) -> Path:
    """A whole model folder; returns it."""
    settings = settings or config()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE, "eos_token": "<|end|>"}))
    tokenizer().save(str(folder / "tokenizer.json"))
    weights = tensors(settings, seed)
    if shards == 1:
        save_file(weights, folder / "model.safetensors")
        return folder
    place = {
        name: f"model-{number % shards + 1:05d}-of-{shards:05d}.safetensors" for number, name in enumerate(weights)
    }
    for file in set(place.values()):
        save_file({name: weights[name] for name in weights if place[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": place}))
    return folder


FAMILIES: dict[str, dict[str, Any]] = {
    "llama": config(),
    "llama_tied": config(tie_word_embeddings=True),
    "llama3_rope": config(
        rope_scaling={"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                      "original_max_position_embeddings": 64},
    ),
    "linear_rope": config(rope_scaling={"rope_type": "linear", "factor": 2.0}),
    "mistral": config("mistral", sliding_window=None),
    "qwen2": config("qwen2", use_sliding_window=False),
    "qwen3": config("qwen3", head_dim=16),
}  # fmt: skip
"""One configuration for each thing in which the families differ."""
