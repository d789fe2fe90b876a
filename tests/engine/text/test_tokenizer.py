import pytest

from engine.text.tokenizer import _pre_tokenizer, from_gguf
from tests.engine import tiny
from vocab.errors import ModelError

META = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": tiny.TOKENS,
    "tokenizer.ggml.merges": [" ".join(merge) for merge in tiny.MERGES],
    "tokenizer.ggml.token_type": [3] * len(tiny.SPECIALS) + [1] * (len(tiny.TOKENS) - len(tiny.SPECIALS)),
}


def pieces(name: str, text: str) -> list[str]:
    return [piece.replace("Ġ", " ") for piece, _ in _pre_tokenizer(name, "here").pre_tokenize_str(text)]


def test_special_tokens_in_a_text_are_one_token_and_leave_no_text() -> None:
    one = from_gguf(META, "here")
    ids = one.encode("<|im_start|>the", special=False)
    assert ids[0] == 1
    assert one.decode(ids) == "the"


def test_a_begin_token_comes_only_where_it_is_wanted() -> None:
    one = from_gguf({**META, "tokenizer.ggml.bos_token_id": 2, "tokenizer.ggml.add_bos_token": True}, "here")
    assert one.encode("an", special=True)[0] == 2
    assert one.encode("an", special=False)[0] != 2


def test_the_longest_token_bounds_the_length_of_a_prompt() -> None:
    assert from_gguf(META, "here").longest == len("<|im_start|>")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("smollm", ["in", " ", "2", "0", "2", "6", "!"]),
        ("gpt-2", ["in", " 2026", "!"]),
        ("qwen2", ["in", " ", "2", "0", "2", "6", "!"]),
        ("llama-bpe", ["in", " ", "202", "6", "!"]),
    ],
)
def test_each_family_cuts_numbers_its_own_way(name: str, wanted: list[str]) -> None:
    assert pieces(name, "in 2026!") == wanted


def test_an_unknown_way_of_cutting_is_refused() -> None:
    with pytest.raises(ModelError, match="pre-tokenizer 'klingon' is not known"):
        from_gguf({**META, "tokenizer.ggml.pre": "klingon"}, "here")
