"""Batches: stored once, in order, answered after the commit; what is malformed is named."""

from pathlib import Path

import msgspec
import pytest

from tests.controller.house import BOOT, NODE, Keys, batch, event, facts, house, uuid
from vocab.errors import InputError
from vocab.events import Severity
from vocab.messages import BatchAck


async def test_batch_is_answered_with_its_last_position_and_its_events_can_be_read(
    tmp_path: Path, database: Keys
) -> None:
    async with house(tmp_path, **database) as home:
        ack = await home.call("POST", "/api/v1/agent/batch", BatchAck, batch(event(1), event(2)))
        assert (ack.position, ack.want_facts) == (2, False)
        stored = await home.get("events")
        assert [each["text"] for each in stored] == ["fault 1", "fault 2"]


async def test_batch_sent_twice_stores_nothing_twice(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        first = await home.post("agent/batch", batch(event(1), event(2)))
        seq = (await home.get("fleet"))["seq"]
        assert await home.post("agent/batch", batch(event(1), event(2))) == first
        assert (await home.get("fleet"))["seq"] == seq
        assert len(await home.get("events")) == 2


async def test_higher_revision_replaces_and_lower_one_does_not(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1, rev=3, text="third")))
        await home.post("agent/batch", batch(event(1, rev=2, text="second"), first=2))
        assert [each["text"] for each in await home.get("events")] == ["third"]


async def test_spool_that_began_anew_is_read_from_its_first_record(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1), event(2), event(3)))
        ack = await home.post("agent/batch", batch(event(4), session="s2"))
        assert ack["position"] == 1
        assert len(await home.get("events")) == 4


async def test_spool_that_is_sent_again_in_pieces_stores_nothing_twice(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        events = [event(number) for number in range(1, 7)]
        await home.post("agent/batch", batch(*events))
        seq = (await home.get("fleet"))["seq"]
        for first in (1, 3, 5):
            piece = events[first - 1 : first + 1]
            ack = await home.post("agent/batch", batch(*piece, first=first, session="s2"))
            assert ack["position"] == first + 1
        assert (await home.get("fleet"))["seq"] == seq


async def test_heartbeat_of_a_new_session_acknowledges_nothing(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch(event(1), event(2)))
        assert (await home.post("agent/batch", batch(session="s2")))["position"] == 0
        assert (await home.post("agent/batch", batch(session="s1")))["position"] == 2


async def test_records_of_an_unknown_node_are_not_taken_before_its_facts(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        ack = await home.post("agent/batch", batch(event(1), facts=None))
        assert (ack["want_facts"], ack["position"]) == (True, 0)
        assert await home.get("events") == []
        ack = await home.post("agent/batch", batch(event(1)))
        assert (ack["want_facts"], ack["position"]) == (False, 1)


async def test_new_boot_asks_for_facts_again(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch())
        assert (await home.post("agent/batch", batch(facts=None, boot_id="boot-2")))["want_facts"] is True


async def test_unknown_keys_are_ignored(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        body = msgspec.to_builtins(batch(event(1)))
        body["from_the_future"] = {"items": [1]}
        body["items"][0]["item"]["event"]["mood"] = "fine"
        assert (await home.post("agent/batch", body))["position"] == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"boot_id": None}, "$.boot_id"),
        ({"items": [{"position": "one", "item": {}}]}, "$.items[0].position"),
        ({"items": [{"position": 1, "item": {"item": "wish"}}]}, "$.items[0].item"),
        ({"node": ""}, "node"),
        ({"node": "n1\u0000"}, "node"),
        ({"node": "n1/gpus"}, "node"),
        ({"generation": -1}, "generation"),
        ({"generation": 10**23}, "generation"),
        ({"facts": {"node": "other", "boot_id": BOOT}}, "facts.node"),
    ],
)
async def test_malformed_batch_is_refused_naming_the_field(
    tmp_path: Path, database: Keys, change: dict, named: str
) -> None:
    async with house(tmp_path, **database) as home:
        with pytest.raises(InputError) as refusal:
            await home.post("agent/batch", {**msgspec.to_builtins(batch()), **change})
        assert named in str(refusal.value)


async def test_truncated_batch_is_refused(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        whole = msgspec.json.encode(batch(event(1)))
        headers = {"Content-Type": "application/json"}
        status, text, _ = await home.raw("POST", "/api/v1/agent/batch", data=whole[:-7], headers=headers)
        assert status == 400
        assert "truncated" in text
        assert await home.get("events") == []


@pytest.mark.parametrize(
    ("change", "named"),
    [({"rev": 2**53 + 1}, "event.rev"), ({"id": "x" * 501}, "event.id"), ({"gpu": "GPU-" + "0" * 600}, "event.gpu")],
)
async def test_event_that_no_database_has_room_for_is_refused_naming_the_field(
    tmp_path: Path, database: Keys, change: dict, named: str
) -> None:
    async with house(tmp_path, **database) as home:
        body = msgspec.to_builtins(batch(event(1)))
        body["items"][0]["item"]["event"] |= change
        with pytest.raises(InputError, match=named):
            await home.post("agent/batch", body)
        assert (await home.post("agent/batch", batch(event(1))))["position"] == 1


@pytest.mark.parametrize("field", ["uuid", "pci", "serial", "name", "vbios", "inforom", "gsp"])
async def test_gpu_that_no_database_has_room_for_is_refused_naming_the_field(tmp_path: Path, field: str) -> None:
    told = facts()
    odd = msgspec.structs.replace(told.gpus[1], **{field: "x" * 501})
    async with house(tmp_path) as home:
        with pytest.raises(InputError, match=rf"facts.gpus\[1\].{field}. has 501 characters"):
            await home.post("agent/batch", batch(facts=msgspec.structs.replace(told, gpus=(told.gpus[0], odd))))


async def test_characters_that_a_database_cannot_hold_do_not_stop_a_node(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        odd = "GPU-\0"
        await home.post("agent/batch", batch(event(1, text="a\0b", code="xid:\0")))
        body = msgspec.to_builtins(batch(event(2), first=2))
        body["items"][0]["item"]["event"]["gpu"] = odd
        assert (await home.post("agent/batch", body))["position"] == 2
        assert (await home.get("events"))[0]["text"] == "a\0b"
        await home.post("pause", {"reason": "a\0b"})
        assert (await home.get("audit"))[-1]["reason"] == "a\ufffdb"


async def test_positions_that_do_not_rise_are_refused(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        body = msgspec.to_builtins(batch(event(1), event(2)))
        body["items"][1]["position"] = 1
        with pytest.raises(InputError, match=r"items\[1\]\.position"):
            await home.post("agent/batch", body)


async def test_node_speaks_only_for_itself(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        with pytest.raises(InputError, match="a node speaks for itself"):
            await home.post("agent/batch", batch(event(1, node="n2")))


@pytest.mark.parametrize(
    ("change", "named"), [({"node": "n2"}, "a node speaks for itself"), ({"at": "1970-01-01T@00:00"}, "cleared.at")]
)
async def test_cleared_condition_is_checked_as_events_are(
    tmp_path: Path, database: Keys, change: dict, named: str
) -> None:
    cleared = {
        "at": "1970-01-01T00:00:01Z",
        "node": NODE,
        "boot_id": BOOT,
        "gpu": uuid(0),
        "code": "xid:79",
        "by": "reset",
    }
    item = {"item": "cleared", "cleared": cleared | change}
    async with house(tmp_path, **database) as home:
        with pytest.raises(InputError, match=named):
            await home.post("agent/batch", {**msgspec.to_builtins(batch()), "items": [{"position": 1, "item": item}]})


async def test_events_are_filtered_by_gpu_code_and_severity(tmp_path: Path, database: Keys) -> None:
    async with house(tmp_path, **database) as home:
        mild = event(2, gpu=1, code="xid:13", severity=Severity.INFO)
        await home.post("agent/batch", batch(event(1), mild, event(3)))

        async def texts(**wanted: object) -> list[str]:
            return [each["text"] for each in await home.get("events", **wanted)]

        assert await texts(gpu=uuid(1)) == ["fault 2"]
        assert await texts(code="xid:79") == ["fault 1", "fault 3"]
        assert await texts(severity="warning") == ["fault 1", "fault 3"]
        assert await texts(node=NODE, limit=1) == ["fault 3"]


async def test_node_of_more_than_one_batch_in_flight_keeps_its_order(tmp_path: Path, database: Keys) -> None:
    import asyncio

    async with house(tmp_path, **database) as home:
        await home.post("agent/batch", batch())
        reports = [batch(event(number), first=number, facts=None) for number in range(1, 21)]
        await asyncio.gather(*(home.post("agent/batch", report) for report in reports))
        assert len(await home.get("events")) == 20
        assert (await home.post("agent/batch", batch(facts=facts())))["position"] == 20
