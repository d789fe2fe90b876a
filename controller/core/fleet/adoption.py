"""An adoption: a policy as it was put in force, with all that decisions by it rest on."""

import msgspec

from controller.core.fleet.pinned import Pinned
from controller.core.fleet.settings import Settings


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """A policy as it was adopted. ``number``: its place among all adoptions, from 1.

    ``version``: its own name, which its actions bear; ``content``: its file, empty for the built-in policy alone.
    ``settings``: what it asks for, with all numbers; ``pinned``: each code's rule as the catalogue had it then.
    ``reverts``: the adoption that it goes back to.
    """

    number: int
    version: str
    at: float
    actor: str
    reason: str
    content: str
    settings: Settings
    pinned: dict[str, Pinned]
    reverts: int | None = None
