"""A card that moves keeps its history, by the serial number of its board; only news is written."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from controller.config import Config
from controller.store import cards, shared
from controller.store.cards import Card, Stay
from controller.store.records import Write
from controller.store.store import Store
from tests.controller.house import Keys
from vocab.messages import NodeFacts
from vocab.observations import GpuIdentity


@pytest.fixture
async def store(tmp_path: Path, database: Keys) -> AsyncIterator[Store]:
    opened = await Store.open(Config(state_dir=str(tmp_path), **database).place)
    if opened.database.shared:
        async with opened.noting() as connection:
            opened.term = await shared.take(connection, "test", await shared.look(connection))
    yield opened
    await opened.close()


def gpu(uuid: str = "GPU-a", serial: str | None = "165", pci: str = "0000:19:00", **more: Any) -> GpuIdentity:
    return GpuIdentity(uuid=uuid, index=0, pci=pci, serial=serial, name="NVIDIA H200", **more)


def node(name: str, *gpus: GpuIdentity, **more: Any) -> NodeFacts:
    return NodeFacts(node=name, boot_id="b", gpus=gpus, **more)


async def tell(store: Store, at: float, *facts: NodeFacts) -> None:
    await store.commit(Write(at=at, facts=facts))


async def named(store: Store, name: str) -> list[Card]:
    async with store.reading() as connection:
        return await cards.named(connection, name)


async def places(store: Store, *uuids: str) -> list[tuple[str, str, float, float | None]]:
    async with store.reading() as connection:
        stays = await cards.places(connection, uuids, 100)
    return [(stay.node, stay.pci, stay.since, stay.until) for stay in stays if isinstance(stay, Stay)]


async def test_a_card_that_moves_to_another_node_keeps_its_places(store: Store) -> None:
    await tell(store, 1.0, node("n1", gpu()))
    await tell(store, 2.0, node("n1"))
    await tell(store, 3.0, node("n2", gpu(pci="0000:3b:00")))
    assert await places(store, "GPU-a") == [("n1", "0000:19:00", 1.0, 2.0), ("n2", "0000:3b:00", 3.0, None)]
    (card,) = await named(store, "165")
    assert (card.first, card.node, card.until) == (1.0, "n2", None)


async def test_a_move_seen_before_the_old_node_speaks_again_ends_the_old_stay_once(store: Store) -> None:
    await tell(store, 1.0, node("n1", gpu()))
    await tell(store, 2.0, node("n2", gpu()))
    await tell(store, 3.0, node("n1"))
    assert await places(store, "GPU-a") == [("n1", "0000:19:00", 1.0, 2.0), ("n2", "0000:19:00", 2.0, None)]


async def test_another_slot_is_another_place(store: Store) -> None:
    await tell(store, 1.0, node("n1", gpu()))
    await tell(store, 2.0, node("n1", gpu(pci="0000:3b:00")))
    assert [place[1:] for place in await places(store, "GPU-a")] == [
        ("0000:19:00", 1.0, 2.0),
        ("0000:3b:00", 2.0, None),
    ]


async def test_facts_that_say_nothing_new_of_a_card_change_nothing(store: Store) -> None:
    await tell(store, 1.0, node("n1", gpu()))
    await tell(store, 9.0, node("n1", gpu(), driver="580.1"))
    assert await places(store, "GPU-a") == [("n1", "0000:19:00", 1.0, None)]


async def test_a_node_that_can_read_no_gpu_says_nothing_of_its_cards(store: Store) -> None:
    await tell(store, 1.0, node("n1", gpu()))
    await tell(store, 2.0, node("n1", unknown_because="the driver does not answer"))
    assert await places(store, "GPU-a") == [("n1", "0000:19:00", 1.0, None)]


async def test_a_new_uuid_on_the_same_board_is_found_by_either_name(store: Store) -> None:
    await tell(store, 1.0, node("n1", gpu()))
    await tell(store, 2.0, node("n1", gpu("GPU-b")))
    assert [card.uuid for card in await named(store, "165")] == ["GPU-a", "GPU-b"]
    assert [card.uuid for card in await named(store, "GPU-a")] == ["GPU-a", "GPU-b"]


async def test_gpus_that_share_a_board_have_places_of_their_own(store: Store) -> None:
    await tell(store, 1.0, node("n1", gpu(), gpu("GPU-b", pci="0000:1a:00")))
    assert len(await named(store, "165")) == 2
    assert [place[1] for place in await places(store, "GPU-b")] == ["0000:1a:00"]


@pytest.mark.parametrize("blank", [None, "", "0", "N/A", "000000000"])
async def test_a_board_without_a_serial_number_is_known_by_its_gpus_alone(store: Store, blank: str | None) -> None:
    await tell(store, 1.0, node("n1", gpu(serial=blank), gpu("GPU-b", serial=blank)))
    assert [card.uuid for card in await named(store, "GPU-a")] == ["GPU-a"]
    await tell(store, 2.0, node("n1", gpu(), gpu("GPU-b", serial=blank)))
    await tell(store, 3.0, node("n1", gpu(serial=blank), gpu("GPU-b", serial=blank)))
    assert [card.uuid for card in await named(store, "165")] == ["GPU-a"]


async def test_two_nodes_in_one_transaction_are_taken_in_order(store: Store) -> None:
    first = node("n1", gpu())
    await tell(store, 1.0, first, replace(first, node="n2"))
    assert [place[0] for place in await places(store, "GPU-a")] == ["n2"]
