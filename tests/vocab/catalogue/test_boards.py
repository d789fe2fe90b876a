"""Reset groups: which GPUs only reset together."""

import pytest

from vocab.catalogue.boards import islands, reset_group, resets

EIGHT = [f"GPU-{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("board", "how"),
    [
        ("NVIDIA H100 80GB HBM3", "alone"),
        ("NVIDIA H200", "alone"),
        ("NVIDIA B200", "alone"),
        ("NVIDIA A100-SXM4-80GB", "together"),
        ("NVIDIA A100 80GB PCIe", "alone"),
        ("NVIDIA H100 NVL", "pairs"),
        ("NVIDIA L4", "alone"),
        ("NVIDIA GB200", "alone"),
        ("NVIDIA GB200 NVL72", "alone"),
        ("something new", "alone"),
    ],
)
def test_board_resets(board, how):
    assert resets(board) == how


@pytest.mark.parametrize("board", ["NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 NVL"])
@pytest.mark.parametrize("count", [0, 1, 7, 8])
def test_every_gpu_is_in_exactly_one_group(board, count):
    groups = reset_group(board, EIGHT[:count])
    assert [uuid for group in groups for uuid in group] == EIGHT[:count]


def test_group_sizes():
    assert {len(group) for group in reset_group("NVIDIA H100 80GB HBM3", EIGHT)} == {1}
    assert {len(group) for group in reset_group("NVIDIA H100 NVL", EIGHT)} == {2}
    assert len(reset_group("NVIDIA A100-SXM4-40GB", EIGHT)) == 1


def test_pairs_of_which_one_gpu_is_missing_are_not_guessed():
    assert reset_group("NVIDIA H100 NVL", EIGHT[:3]) == (tuple(EIGHT[:3]),)


@pytest.mark.parametrize(("board", "sizes"), [("NVIDIA H100 80GB HBM3", [8]), ("NVIDIA A100-SXM4-80GB", [8]),
                                              ("NVIDIA H100 NVL", [2, 2, 2, 2]), ("NVIDIA H100 PCIe", []),
                                              ("NVIDIA L40S", []), ("", [])])  # fmt: skip
def test_islands_are_what_nvlink_joins_and_none_where_the_name_does_not_tell(board: str, sizes: list[int]) -> None:
    assert [len(island) for island in islands(board, EIGHT)] == sizes
