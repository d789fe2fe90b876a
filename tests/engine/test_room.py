from pathlib import Path

import pytest
import torch

from engine.core.attention import cache_block_bytes
from engine.loading import load_model
from engine.room import cache_size, free_bytes
from tests.engine.replica import settings

CPU = torch.device("cpu")


def machine(folder: Path, free_kib: int, **files: str) -> Path:
    (folder / "meminfo").write_text(f"MemTotal:       9999999 kB\nMemAvailable:   {free_kib} kB\n")
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)
    return folder


def test_what_the_machine_has_available_is_free(tmp_path: Path) -> None:
    assert free_bytes(CPU, machine(tmp_path, 4096), tmp_path) == 4096 * 1024


def test_a_control_group_s_limit_counts(tmp_path: Path) -> None:
    folder = machine(tmp_path, 4096, memory_max="3000000", memory_current="1000000")
    assert free_bytes(CPU, folder, folder) == 2_000_000


def test_a_control_group_without_limit_counts_not(tmp_path: Path) -> None:
    folder = machine(tmp_path, 4096, memory_max="max\n", memory_current="1000000")
    assert free_bytes(CPU, folder, folder) == 4096 * 1024


def test_half_of_what_is_free_is_taken_if_nothing_is_said(tiny_model: Path) -> None:
    model = load_model(settings(tiny_model, kv_mib=8))
    arch = model.runner._model.arch  # type: ignore[attr-defined]
    block = cache_block_bytes(16, arch.layers, arch.kv_heads, arch.head_dim, 4)
    config = settings(tiny_model, kv_mib=None)
    assert cache_size(config, arch, 4, 2**21)[0] == 2**20 // block
    assert cache_size(config, arch, 4, 2**40)[0] == 16 * 256 // 16  # no more than can ever be used


@pytest.mark.parametrize("mib", [None, 1])
def test_a_model_loads_with_either(mib: int | None, tiny_model: Path) -> None:
    assert load_model(settings(tiny_model, kv_mib=mib)).scheduler.pool.count > 0
