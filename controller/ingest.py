"""Batches of agents: checked, turned into stimuli in order, stored, and only then acknowledged."""

import msgspec

from controller.core.stimuli import AnyStimulus, Arrived, NodeReported, Replicas, Reported, Sampled
from vocab.errors import InputError
from vocab.events import Event, epoch_s
from vocab.messages import Batch, EventItem, Item, Sequenced

NAME_LEAST, NAME_MOST = 1, 253  # DNS names


def checked(batch: Batch) -> Batch:
    """The batch, if it makes sense. Raises InputError naming the field that does not."""
    if not NAME_LEAST <= len(batch.node) <= NAME_MOST:
        raise InputError("the batch's `node` must be the node's name, 1 to 253 characters")
    if batch.facts is not None and batch.facts.node != batch.node:
        raise InputError(f"`facts.node` is {batch.facts.node!r} but `node` is {batch.node!r}: they must be the same")
    before = 0
    for place, record in enumerate(batch.items):
        if record.position <= before:
            raise InputError(
                f"`items[{place}].position` is {record.position} after {before}: positions must rise from 1"
            )
        before = record.position
        _check_item(batch.node, record.item, f"items[{place}].item")
    return batch


def _check_item(node: str, item: Item, where: str) -> None:
    named = item.event.node if isinstance(item, EventItem) else getattr(item, "node", node)
    if named != node:
        raise InputError(f"`{where}` is about node {named!r} but the batch is of {node!r}: a node speaks for itself")
    if isinstance(item, EventItem):
        _check_times(item.event, where)


def _check_times(event: Event, where: str) -> None:
    for field in ("at", "first_at", "last_at"):
        stamp = getattr(event, field)
        if stamp is None:
            continue
        try:
            epoch_s(stamp)
        except ValueError as error:
            raise InputError(f"`{where}.event.{field}` is {stamp!r}: it must be RFC 3339 or null") from error


def stimuli(batch: Batch, records: list[Sequenced]) -> list[AnyStimulus]:
    """What the Core is told of a batch, in its order; ``records`` are those of its items that are new."""
    told: list[AnyStimulus] = []
    if batch.facts is not None:
        told.append(NodeReported(facts=batch.facts))
    told.append(Reported(node=batch.node, paused=batch.paused))
    told.extend(Arrived(node=batch.node, item=record.item) for record in records)
    if batch.gpus:
        told.append(Sampled(node=batch.node, gpus=batch.gpus))
    if batch.replicas is not None:
        told.append(Replicas(node=batch.node, statuses=batch.replicas))
    return told


def events(records: list[Sequenced]) -> list[Event]:
    """The events among spool records."""
    return [record.item.event for record in records if isinstance(record.item, EventItem)]


decode_batch = msgspec.json.Decoder(Batch)
