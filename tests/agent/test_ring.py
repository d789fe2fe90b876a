"""The ring keeps what was seen of late, in a bounded space, in the form of a recording, over restarts and crashes."""

from pathlib import Path

import msgspec
import pytest

from agent.ring import MOST_BYTES, Ring
from corral.replay.recording import Recording
from vocab.messages import FenceItem
from vocab.observations import (
    ActionSeen,
    AnyObservation,
    GpuIdentity,
    GpuSample,
    KernelRecord,
    NodeSeen,
    Restart,
    SourceState,
)

INVENTORY = NodeSeen(at=1.0, node="n1", boot_id="b1", gpus=(GpuIdentity(uuid="GPU-1", index=0, pci="0000:18:00"),))
LIMIT = 4 * MOST_BYTES


def record(at: float, text: str = "ordinary") -> KernelRecord:
    return KernelRecord(at=at, node="n1", source="kmsg", line=text, seq=int(at))


def kept(ring: Ring, path: Path) -> list[AnyObservation]:
    file = path / "recording.jsonl"
    file.write_bytes(b"".join(ring.lines()))
    return list(Recording([file]))


def test_what_goes_in_comes_out_in_its_order(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", LIMIT, "n1")
    seen: list[AnyObservation] = [
        INVENTORY,
        record(2),
        SourceState(at=3, node="n1", source="nvml", state="up"),
        record(4),
    ]
    for one in seen:
        ring.add(one)
    assert kept(ring, tmp_path) == seen


def test_space_is_bounded_and_what_is_left_begins_with_the_inventory(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", LIMIT, "n1")
    ring.add(INVENTORY)
    noise = "".join(f"{number * 7919 % 99991:05d}" for number in range(9000))  # packs badly
    for at in range(2, 400):
        ring.add(record(at, noise))
    files = list((tmp_path / "ring").iterdir())
    assert sum(file.stat().st_size for file in files) <= LIMIT
    found = kept(ring, tmp_path)
    assert found[0] == msgspec.structs.replace(INVENTORY, at=found[0].at)
    assert found[-1].at == 399
    assert len(found) < 399


def test_a_restarted_agent_goes_on_and_says_so(tmp_path: Path) -> None:
    Ring(tmp_path / "ring", LIMIT, "n1").add(INVENTORY)
    first = Ring(tmp_path / "ring", LIMIT, "n1")
    first.add(INVENTORY)
    first.flush()
    again = Ring(tmp_path / "ring", LIMIT, "n1")
    again.add(record(9))
    found = kept(again, tmp_path)
    assert [one for one in found if isinstance(one, Restart)]
    assert found[-1] == record(9)


def test_a_torn_last_line_is_cut_off(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", LIMIT, "n1")
    ring.add(INVENTORY)
    ring.flush()
    (newest,) = (tmp_path / "ring").iterdir()
    with newest.open("ab") as file:
        file.write(b'{"obs":"kernel","at":5,"li')
    again = Ring(tmp_path / "ring", LIMIT, "n1")
    again.add(record(6))
    assert [type(one) for one in kept(again, tmp_path)] == [NodeSeen, Restart, KernelRecord]


def test_time_never_goes_back(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", LIMIT, "n1")
    ring.add(INVENTORY)
    ring.add(record(100))
    ring.add(record(40))
    assert [one.at for one in kept(ring, tmp_path)] == [1, 100, 100]


@pytest.mark.parametrize(
    ("op", "told"), [("placed", ("fence", "done")), ("refused", ("fence", "refused")), ("expired", ("unfence", "done"))]
)
def test_what_the_agent_does_by_itself_is_kept(tmp_path: Path, op: str, told: tuple[str, str]) -> None:
    ring = Ring(tmp_path / "ring", LIMIT, "n1")
    ring.acted(FenceItem(at=5, node="n1", gpu="GPU-1", op=op, why="xid:79"))
    (seen,) = kept(ring, tmp_path)
    assert isinstance(seen, ActionSeen)
    assert (seen.of, seen.state, seen.by, seen.gpu) == (*told, "agent", "GPU-1")


def test_without_space_nothing_is_kept_and_nothing_written(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "ring", 0, "n1")
    ring.add(GpuSample(at=1, node="n1", gpu="GPU-1"))
    assert list(ring.lines()) == []
    assert not (tmp_path / "ring").exists()


def test_a_folder_that_cannot_be_written_ends_only_the_ring(tmp_path: Path) -> None:
    (tmp_path / "ring").write_text("a file in its place")
    ring = Ring(tmp_path / "ring", LIMIT, "n1")
    ring.add(record(1))
    assert list(ring.lines()) == []
