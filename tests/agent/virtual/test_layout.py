"""The file's table, its C header, and what both rest on."""

import ctypes
from pathlib import Path

from agent.virtual import layout
from agent.virtual.header import c_header
from agent.virtual.state import VirtualState

HEADER = Path(__file__).parents[2] / "fakes/nvml/layout.h"


def test_the_committed_c_header_is_made_from_the_table() -> None:
    assert c_header() == HEADER.read_text(), "run: python -m agent.virtual.header > tests/fakes/nvml/layout.h"


def test_no_field_straddles_an_eight_byte_word() -> None:
    """Readers in other processes take no lock: a number must be written in one piece."""
    for block in layout.BLOCKS:
        struct = layout.STRUCTS[block.name]
        for field in block.fields:
            if field.kind in layout.SCALARS:
                size = ctypes.sizeof(layout.SCALARS[field.kind][0])
                assert getattr(struct, field.name).offset % size == 0, f"{block.name}.{field.name}"


def test_two_openings_of_a_file_see_each_others_writes(tmp_path: Path) -> None:
    one = VirtualState.create(tmp_path / "virtual.state", "node-a")
    other = VirtualState.open(tmp_path / "virtual.state")
    one.gpus[7].power_mw = 123_456
    assert other.gpus[7].power_mw == 123_456
