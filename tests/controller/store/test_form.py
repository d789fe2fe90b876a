"""What controllers store has a form, and a change of it a number: an older version must know that it is too old."""

import json
from hashlib import blake2b
from typing import Any

import msgspec

from controller.core.fleet.pinned import Pinned
from controller.core.fleet.settings import Settings
from controller.several.inbox import Body
from controller.store.form import FORM
from vocab.lines import AnyLine

OF_FORM = {1: "c78132693d94a67e"}  # a digest of the types, by the number of their form


def bare(schema: Any) -> Any:
    """A schema without its words."""
    if isinstance(schema, dict):
        return {name: bare(each) for name, each in schema.items() if name not in {"description", "title"}}
    return [bare(each) for each in schema] if isinstance(schema, list) else schema


def test_what_is_stored_is_of_the_form_that_is_numbered() -> None:
    schemas, parts = msgspec.json.schema_components((AnyLine, Settings, Pinned, Body))
    words = json.dumps(bare([list(schemas), parts]), sort_keys=True)
    digest = blake2b(words.encode(), digest_size=8).hexdigest()
    assert OF_FORM[FORM] == digest, (
        f"a line, a policy or an order has another form now ({digest}). If a released version does not know it, raise"
        " controller.store.form.FORM and add the digest; before the first release of this form replace it"
    )
