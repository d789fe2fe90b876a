"""Text to token ids and back: a tokenizer.json, or the vocabulary and merges inside a GGUF file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vocab.errors import ModelError

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPLITS = {"llama-bpe": _LLAMA3, "qwen2": _LLAMA3.replace("{1,3}", "")}  # GGUF tokenizer.ggml.pre -> its pattern

_CONTROL, _USER_DEFINED = 3, 4  # GGUF's token types


class Tokenizer:
    """Encoding and decoding for one model. Safe to use from several threads."""

    def __init__(self, inner: Any, *, bos: int | None = None) -> None:
        self._inner = inner
        self._bos = bos
        self.vocab: int = inner.get_vocab_size(with_added_tokens=True)
        self.longest = max(len(token.encode()) for token in inner.get_vocab(with_added_tokens=True))
        """Bytes of the longest token: a text of n bytes has at least n / longest tokens."""

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Token ids of ``text``; ``special`` adds what the model wants around a plain text (a chat has it already)."""
        ids: list[int] = self._inner.encode(text, add_special_tokens=special).ids
        return [self._bos, *ids] if special and self._bos is not None else ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without special tokens; incomplete UTF-8 comes out as U+FFFD."""
        text: str = self._inner.decode(list(ids), skip_special_tokens=True)
        return text


def from_file(path: Path) -> Tokenizer:
    """The tokenizer in a tokenizer.json. Raises ModelError."""
    import tokenizers

    if not path.is_file():
        raise ModelError(f"{path}: missing; a model folder holds config.json, tokenizer.json and safetensors")
    try:
        inner = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:
        raise ModelError(f"{path}: not a tokenizer of the tokenizers library: {error}") from error
    inner.no_truncation()
    inner.no_padding()
    return Tokenizer(inner)


def from_gguf(meta: Mapping[str, Any], where: str) -> Tokenizer:
    """The byte-level BPE tokenizer in GGUF's metadata. Raises ModelError for other kinds."""
    import tokenizers
    from tokenizers import decoders, models

    kind = meta.get("tokenizer.ggml.model")
    if kind != "gpt2":
        raise ModelError(f"{where}: tokenizer {kind!r} is not supported from GGUF; use the model's safetensors folder")
    tokens: list[str] = meta["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in meta.get("tokenizer.ggml.merges", ())]
    vocab = {token: number for number, token in enumerate(tokens)}
    inner = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
    inner.pre_tokenizer = _pre_tokenizer(str(meta.get("tokenizer.ggml.pre", "default")), where)
    inner.decoder = decoders.ByteLevel()
    types: list[int] = meta.get("tokenizer.ggml.token_type") or [1] * len(tokens)
    for special, wanted in ((True, _CONTROL), (False, _USER_DEFINED)):
        added = [tokenizers.AddedToken(token, special=special, normalized=False)
                 for token, type_ in zip(tokens, types, strict=True) if type_ == wanted]  # fmt: skip
        (inner.add_special_tokens if special else inner.add_tokens)(added)
    bos = meta.get("tokenizer.ggml.bos_token_id") if meta.get("tokenizer.ggml.add_bos_token") else None
    return Tokenizer(inner, bos=bos)


def _pre_tokenizer(name: str, where: str) -> Any:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Split
    from tokenizers.pre_tokenizers import Sequence as Steps

    if name in {"default", "gpt-2"}:
        return ByteLevel(add_prefix_space=False)
    if name == "smollm":
        return Steps([Digits(individual_digits=True), ByteLevel(add_prefix_space=False)])
    if name in _SPLITS:
        split = Split(Regex(_SPLITS[name]), behavior="isolated")
        return Steps([split, ByteLevel(add_prefix_space=False, use_regex=False)])
    known = ", ".join(("default", "gpt-2", "smollm", *_SPLITS))
    raise ModelError(f"{where}: pre-tokenizer {name!r} is not known, only {known}; use the model's safetensors folder")
