"""Batches of agents: checked, turned into stimuli in order, stored, and only then acknowledged."""

import msgspec

from controller.core.fleet.stimuli import AnyStimulus, Arrived, NodeReported, Replicas, Reported, Sampled
from vocab.errors import InputError
from vocab.events import Event, epoch_s
from vocab.messages import Batch, ClearedItem, EventItem, Item, Sequenced

NAME_LEAST, NAME_MOST = 1, 253  # DNS names
WORD_MOST = 500  # of an id, a UUID, a code: real ones have under 50, and an index takes no more than 2700 bytes
MOST_NUMBER = 2**53  # what JSON carries everywhere


def checked(batch: Batch) -> Batch:
    """The batch, if it makes sense. Raises InputError naming the field that does not."""
    if not NAME_LEAST <= len(batch.node) <= NAME_MOST:
        raise InputError("the batch's `node` must be the node's name, 1 to 253 characters")
    if "/" in batch.node or not batch.node.isprintable():
        raise InputError(f"the batch's `node` is {batch.node!r}: a name is printable and has no slash")
    if not 0 <= batch.generation <= MOST_NUMBER:
        raise InputError(f"the batch's `generation` is {batch.generation}: it is the number of a Desired, or 0")
    if batch.facts is not None and batch.facts.node != batch.node:
        raise InputError(f"`facts.node` is {batch.facts.node!r} but `node` is {batch.node!r}: they must be the same")
    _check_word(batch.session, "session")
    for number, gpu in enumerate(batch.facts.gpus if batch.facts is not None else ()):
        for name in ("uuid", "pci", "serial", "name", "vbios", "inforom", "gsp"):
            _check_word(getattr(gpu, name), f"facts.gpus[{number}].{name}")
    for each in batch.replicas or ():
        _check_word(each.replica, "replicas.replica")
    before = 0
    for place, record in enumerate(batch.items):
        if not before < record.position <= MOST_NUMBER:
            raise InputError(
                f"`items[{place}].position` is {record.position} after {before}: positions must rise from 1"
            )
        before = record.position
        _check_item(batch.node, record.item, f"items[{place}].item")
    return batch


def _check_item(node: str, item: Item, where: str) -> None:
    named = _node_of(item)
    if named != node:
        raise InputError(f"`{where}` is about node {named!r} but the batch is of {node!r}: a node speaks for itself")
    if isinstance(item, EventItem):
        _check_event(item.event, where)
    elif isinstance(item, ClearedItem):
        _check_stamp(item.cleared.at, where, "cleared.at")


def _check_event(event: Event, where: str) -> None:
    """Thousands a second come at times: what is usual takes no call."""
    for field, word in (("id", event.id), ("gpu", event.gpu), ("code", event.code), ("device", event.device)):
        if word is not None and len(word) > WORD_MOST:
            _check_word(word, where, "event", field)
    replica = event.fields.get("replica")
    if isinstance(replica, str):
        _check_word(replica, where, "event.fields.replica")
    if not 0 <= event.rev <= MOST_NUMBER:
        raise InputError(f"`{where}.event.rev` is {event.rev}: it counts the revisions from 1")
    known = None  # most events have one moment
    for field, stamp in (("at", event.at), ("first_at", event.first_at), ("last_at", event.last_at)):
        if stamp != known:
            _check_stamp(stamp, where, "event", field)
            known = stamp


def _check_word(word: str | None, *where: str) -> None:
    if word is not None and len(word) > WORD_MOST:
        raise InputError(f"`{'.'.join(where)}` has {len(word)} characters: it may have {WORD_MOST}")


def _node_of(item: Item) -> str:
    if isinstance(item, EventItem):
        return item.event.node
    return item.cleared.node if isinstance(item, ClearedItem) else item.node


def _check_stamp(stamp: str | None, *where: str) -> None:
    if stamp is None:
        return
    try:
        epoch_s(stamp)
    except (ValueError, OverflowError) as error:
        raise InputError(f"`{'.'.join(where)}` is {stamp!r}: it must be RFC 3339") from error


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
