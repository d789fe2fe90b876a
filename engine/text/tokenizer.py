"""Text to token ids and back: a tokenizer.json, or the vocabulary and merges inside a GGUF file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.text.detokenizer import ByteText, Detokenizer, WindowText
from vocab.errors import ModelError

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_SPLITS = {"llama-bpe": _LLAMA3, "qwen2": _LLAMA3.replace("{1,3}", "")}  # GGUF tokenizer.ggml.pre -> its pattern

_CONTROL, _USER_DEFINED = 3, 4  # GGUF's token types


def _byte_letters() -> dict[str, int]:
    """The letters that byte-level vocabularies write bytes with: printable ones as they are, the others from U+0100."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTE_OF = _byte_letters()


class Tokenizer:
    """Encoding and decoding for one model. Safe to use from several threads."""

    def __init__(self, inner: Any, *, bos: int | None = None) -> None:
        self._inner = inner
        self._bos = bos
        self.vocab: int = inner.get_vocab_size(with_added_tokens=True)
        self.longest = max(len(token.encode()) for token in inner.get_vocab(with_added_tokens=True))
        """Bytes of the longest token: a text of n bytes has at least n / longest tokens."""
        self._special = {number for number, token in inner.get_added_tokens_decoder().items() if token.special}
        self._byte_level = type(inner.decoder).__name__ == "ByteLevel"

    def encode(self, text: str, *, special: bool) -> list[int]:
        """Token ids of ``text``; ``special`` adds what the model wants around a plain text (a chat has it already)."""
        ids: list[int] = self._inner.encode(text, add_special_tokens=special).ids
        return [self._bos, *ids] if special and self._bos is not None else ids

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids`` without special tokens; incomplete UTF-8 comes out as U+FFFD."""
        text: str = self._inner.decode(list(ids), skip_special_tokens=True)
        return text

    def stream(self) -> Detokenizer:
        """The text of an answer, token by token; joined it is what ``decode`` gives."""
        return ByteText(self._shown) if self._byte_level else WindowText(self.decode)

    def _shown(self, token: int) -> bytes:
        return b"" if token in self._special else self.bytes_of(token)

    def bytes_of(self, token: int) -> bytes:
        """The bytes that a token stands for, of a special one its name; none for an id without a token."""
        written = self.written(token)
        if token in self._special:
            return written.encode()
        if self._byte_level:
            known = [_BYTE_OF.get(letter) for letter in written]
            return bytes(byte for byte in known if byte is not None) if None not in known else written.encode()
        if len(written) == 6 and written.startswith("<0x"):
            return bytes([int(written[3:5], 16)])
        return written.replace("\u2581", " ").encode()

    def written(self, token: int) -> str:
        """A token as its vocabulary writes it."""
        return str(self._inner.id_to_token(token) or "")

    def words(self) -> list[bytes]:
        """All tokens in order, special ones empty: what a grammar is matched with."""
        return [self._shown(token) for token in range(self.vocab)]


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
