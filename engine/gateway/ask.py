"""What the gateway reads of a request: the model, whether it streams, and the first part of the prompt."""

import msgspec

from engine.gateway.routing import PREFIX_BYTES
from vocab.errors import InputError


class _Body(msgspec.Struct):
    model: str
    stream: bool | None = False
    messages: msgspec.Raw = msgspec.Raw(b"")
    prompt: msgspec.Raw = msgspec.Raw(b"")


class Ask(msgspec.Struct, frozen=True):
    """One request; ``raw`` is what goes on to the replica, byte for byte."""

    path: str
    raw: bytes
    model: str
    streams: bool
    prefix: bytes


def understand(path: str, raw: bytes) -> Ask:
    """The request in these bytes. Raises InputError naming what is wrong."""
    try:
        body = msgspec.json.decode(raw, type=_Body)
    except msgspec.DecodeError as error:
        raise InputError(f"the request's body is wrong: {error}") from error
    prompt = bytes(body.messages or body.prompt)
    return Ask(path, raw, body.model, bool(body.stream), prompt[:PREFIX_BYTES])
