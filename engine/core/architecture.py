"""What kind of Llama a model is: sizes and flags, read from config.json or from GGUF's metadata.

One family is served: Llama, SmolLM, Mistral, Qwen2 and Qwen3 differ in three flags (bias of q, k, v; a norm on
each q and k head; embedding used as head) and in how positions turn.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from vocab.errors import ModelError


class Rope(msgspec.Struct, frozen=True):
    """How positions turn queries and keys: base, and how frequencies are stretched for long contexts."""

    theta: float = 10_000.0
    kind: str = "default"  # default, linear or llama3, in the words of config.json
    factor: float = 1.0
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    original_max_position_embeddings: int = 8192


class Architecture(msgspec.Struct, frozen=True):
    """Sizes (numbers of elements) and flags of one model."""

    family: str
    vocab: int
    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    max_positions: int
    norm_eps: float
    rope: Rope
    qkv_bias: bool = False
    qk_norm: bool = False
    tied: bool = False
    eos_ids: tuple[int, ...] = ()

    @property
    def qkv(self) -> int:
        """Rows of the joined query, key and value matrix."""
        return (self.heads + 2 * self.kv_heads) * self.head_dim


FAMILIES = ("llama", "mistral", "qwen2", "qwen3")  # SmolLM and SmolLM2 call themselves llama


def _need(source: Mapping[str, Any], key: str, where: str) -> Any:
    if source.get(key) is None:
        raise ModelError(f"{where}: the key {key} is missing; is this a complete model of the Llama family?")
    return source[key]


def _family(name: str, where: str) -> str:
    if name not in FAMILIES:
        raise ModelError(f"{where}: models of type {name!r} cannot be served, only {', '.join(FAMILIES)}")
    return name


def from_config_json(config: Mapping[str, Any], where: str) -> Architecture:
    """The architecture that a config.json describes. Raises ModelError naming ``where`` and the key."""
    family = _family(str(_need(config, "model_type", where)), where)
    hidden, heads = int(_need(config, "hidden_size", where)), int(_need(config, "num_attention_heads", where))
    if config.get("hidden_act", "silu") != "silu":
        raise ModelError(f"{where}: hidden_act {config['hidden_act']!r} is not supported, only silu")
    if config.get("mlp_bias") or (config.get("attention_bias") and family != "qwen2"):
        raise ModelError(f"{where}: biases on the output or feed-forward projections are not supported")
    longest = int(_need(config, "max_position_embeddings", where))
    if config.get("sliding_window") and config.get("use_sliding_window", True):
        longest = min(longest, int(config["sliding_window"]))  # inside one window both kinds of attention agree
    eos = config.get("eos_token_id")
    return Architecture(
        family=family,
        vocab=int(_need(config, "vocab_size", where)),
        hidden=hidden,
        intermediate=int(_need(config, "intermediate_size", where)),
        layers=int(_need(config, "num_hidden_layers", where)),
        heads=heads,
        kv_heads=int(config.get("num_key_value_heads") or heads),
        head_dim=int(config.get("head_dim") or hidden // heads),
        max_positions=longest,
        norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        rope=_rope(config, where),
        qkv_bias=family == "qwen2",
        qk_norm=family == "qwen3",
        tied=bool(config.get("tie_word_embeddings", False)),
        eos_ids=tuple(eos) if isinstance(eos, list) else () if eos is None else (int(eos),),
    )


def _rope(config: Mapping[str, Any], where: str) -> Rope:
    """Both spellings: rope_theta beside rope_scaling (before transformers 5), or all in rope_parameters."""
    scaling = dict(config.get("rope_parameters") or config.get("rope_scaling") or {})
    theta = float(scaling.get("rope_theta") or config.get("rope_theta") or 10_000.0)
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    if kind not in {"default", "linear", "llama3"}:
        raise ModelError(f"{where}: rope scaling of type {kind!r} is not supported, only linear and llama3")
    if kind == "default":
        return Rope(theta)
    numbers = {name: scaling[name] for name in Rope.__struct_fields__ if name in scaling}
    return Rope(theta=theta, kind=kind, **numbers)


def from_gguf(meta: Mapping[str, Any], tensors: frozenset[str], where: str) -> Architecture:
    """The architecture in GGUF's metadata; ``tensors`` are the names in the file. Raises ModelError."""
    family = _family(str(_need(meta, "general.architecture", where)), where)

    def get(key: str) -> Any:
        return _need(meta, f"{family}.{key}", where)

    if meta.get(f"{family}.rope.scaling.type", "none") not in {"none", "linear"}:
        raise ModelError(f"{where}: rope scaling {meta[f'{family}.rope.scaling.type']!r} is not supported")
    hidden, heads = int(get("embedding_length")), int(get("attention.head_count"))
    factor = float(meta.get(f"{family}.rope.scaling.factor", 1.0))
    eos = meta.get("tokenizer.ggml.eos_token_id")
    return Architecture(
        family=family,
        vocab=len(_need(meta, "tokenizer.ggml.tokens", where)),
        hidden=hidden,
        intermediate=int(get("feed_forward_length")),
        layers=int(get("block_count")),
        heads=heads,
        kv_heads=int(meta.get(f"{family}.attention.head_count_kv", heads)),
        head_dim=int(meta.get(f"{family}.attention.key_length", hidden // heads)),
        max_positions=int(get("context_length")),
        norm_eps=float(get("attention.layer_norm_rms_epsilon")),
        rope=Rope(
            float(meta.get(f"{family}.rope.freq_base", 10_000.0)), "linear" if factor != 1.0 else "default", factor
        ),
        qkv_bias="blk.0.attn_q.bias" in tensors,
        qk_norm="blk.0.attn_q_norm.weight" in tensors,
        tied="output.weight" not in tensors,
        eos_ids=() if eos is None else (int(eos),),
    )
