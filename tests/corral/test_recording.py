"""Recordings as others write them: types that mean the same, unknown keys, several spellings of an address."""

import json
from pathlib import Path
from typing import Any

import pytest

from corral.replay.recording import KINDS, Recording
from vocab.errors import InputError
from vocab.events import Mig
from vocab.observations import DriverEvent, GpuSample, NodeSeen, ReplicaSeen, ServiceSeen

GPU = {"uuid": "GPU-1", "index": 0, "pci": "0000:18:00"}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def one(**line: Any) -> Any:
        path = tmp_path / "r.jsonl"
        path.write_text(json.dumps({"at": 0, "node": "n1"} | line) + "\n")
        (found,) = Recording([path])
        return found

    return one


def readings(read: Any, **values: Any) -> dict[str, Any]:
    sample = read(obs="gpu", gpu="GPU-1", readings=values)
    assert isinstance(sample, GpuSample)
    known = sample.readings
    return {name: getattr(known, name) for name in values if hasattr(known, name)}


def test_a_whole_number_may_come_with_a_point(read: Any) -> None:
    assert readings(read, memory_used_bytes=13.2e9) == {"memory_used_bytes": 13_200_000_000}


def test_a_flag_may_come_as_true_or_false(read: Any) -> None:
    assert readings(read, remap_pending=True, remap_failed=False) == {"remap_pending": 1, "remap_failed": 0}


def test_a_mask_may_come_as_hex(read: Any) -> None:
    assert readings(read, clock_reasons="0x48") == {"clock_reasons": 0x48}


def test_what_is_no_number_is_not_known_and_the_others_are(read: Any) -> None:
    found = readings(read, power_w="[N/A]", utilization_ratio=None, temperature_c=41, memory_used_bytes=1.5)
    assert found == {"power_w": None, "utilization_ratio": None, "temperature_c": 41, "memory_used_bytes": None}


def test_all_ones_of_64_bits_are_a_number_that_the_probes_judge(read: Any) -> None:
    assert readings(read, clock_reasons=2**64 - 1) == {"clock_reasons": 2**64 - 1}


def test_a_reading_under_another_name_does_no_harm(read: Any) -> None:
    assert readings(read, coffee_level=3, power_w=70) == {"power_w": 70}


def test_null_where_a_list_or_an_object_may_be_missing_is_missing(read: Any) -> None:
    line = {"readings": None, "errors": None, "links": None, "processes": None, "instances": None}
    assert read(obs="gpu", gpu="GPU-1", **line) == GpuSample(at=0, node="n1", gpu="GPU-1")
    seen = read(obs="replica", replica="R1", members=None, gpus=None, pids=None, exit=None)
    assert seen == ReplicaSeen(at=0, node="n1", replica="R1")


def test_addresses_have_one_spelling(read: Any) -> None:
    gpu = GPU | {"pci": "00000008:0A:00.0", "serial": 1320123}
    devices = [{"pci": "0008:0A:00.0", "class": "030200", "driver": "vfio-pci", "vendor": "0x10de"}]
    seen = read(obs="node", boot_id="b1", gpus=[gpu], pci_devices=devices)
    assert isinstance(seen, NodeSeen)
    assert (seen.gpus[0].pci, seen.gpus[0].serial) == ("0008:0a:00", "1320123")
    assert seen.pci_devices is not None
    assert (seen.pci_devices[0].pci, seen.pci_devices[0].class_) == ("0008:0a:00", "0x030200")
    assert read(obs="gpu", pci="5D:00").pci == "0000:5d:00"


def test_gpus_stand_for_members_in_the_order_of_their_ranks(read: Any) -> None:
    seen = read(obs="replica", replica="R1", gpus=["GPU-1", "GPU-2"])
    assert [(member.node, member.gpu, member.rank) for member in seen.members] == [
        ("n1", "GPU-1", 0),
        ("n1", "GPU-2", 1),
    ]


def test_a_slice_may_be_named_in_two_ways(read: Any) -> None:
    for mig in ({"gi": 2, "ci": 0}, "2/0"):
        seen = read(obs="replica", replica="R1", members=[{"node": "n1", "gpu": "GPU-1", "rank": 0, "mig": mig}])
        assert seen.members[0].mig == Mig(2, 0)


def test_no_instance_in_particular_is_the_whole_gpu(read: Any) -> None:
    event = read(obs="driver_event", pci="0000:18:00.0", type="xid", data=119, mig={"gi": 2**32 - 1, "ci": 2**32 - 1})
    assert isinstance(event, DriverEvent)
    assert (event.pci, event.mig) == ("0000:18:00", None)


def test_a_service_is_active_in_words_or_not_at_all(read: Any) -> None:
    assert read(obs="service", unit="x", active="failed", started_at="S1").active == "failed"
    assert read(obs="service", unit="x", active=False) == ServiceSeen(at=0, node="n1", unit="x", active=False)


def test_one_error_may_stand_for_a_whole_link(read: Any) -> None:
    sample = read(obs="gpu", gpu="GPU-1", link_errors={"4": "NOT_SUPPORTED", "5": {"crc_errors": "NOT_SUPPORTED"}})
    assert sample.link_errors == {"4": {"state": "NOT_SUPPORTED"}, "5": {"crc_errors": "NOT_SUPPORTED"}}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_read_with_keys_that_nobody_knows(read: Any, kind: str) -> None:
    named = {
        "node": {"boot_id": "b1"}, "deployment": {"deployment": "chat"}, "source": {"source": "nvml", "state": "up"},
        "check": {"check": "canary"}, "process": {"pid": 7}, "service": {"unit": "x"}, "replica": {"replica": "R1"},
        "log": {"replica": "R1"}, "action": {"of": "drain"}, "restart": {"of": "agent"}, "operator": {"do": "pause"},
        "reach": {"of": "n1", "by": "gateway", "ok": False}, "uplink": {"state": "down"},
    }  # fmt: skip
    assert read(obs=kind, colour="green", **named.get(kind, {})).node == "n1"


def test_what_names_the_subject_must_be_there(read: Any) -> None:
    with pytest.raises(InputError, match=r"r\.jsonl:1: not an observation: .*boot_id"):
        read(obs="node", gpus=[GPU])


@pytest.mark.parametrize("replicas", [-1, 2**31, 2**64])
def test_a_wish_that_no_fleet_can_fill_is_refused(read: Any, replicas: int) -> None:
    with pytest.raises(InputError, match=r"r\.jsonl:1: .*replicas"):
        read(obs="deployment", deployment="chat", replicas=replicas)


@pytest.mark.parametrize("at", [1e300, -1e300, 1e12])
def test_a_time_beyond_the_calendar_is_none(read: Any, at: float) -> None:
    with pytest.raises(InputError, match=r"r\.jsonl:1: at .* is no time"):
        read(obs="end", at=at)
