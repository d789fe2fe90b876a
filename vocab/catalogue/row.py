"""The form of one row of the catalogue. The catalogue is the default policy."""

import msgspec

from vocab.catalogue.persistence import Outlives
from vocab.events import Recovery, Scope, Severity
from vocab.states import ClearsOn


class CodeRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a code (``xid:79``, ``sxid:20034``, ``gpu_lost``) means and what we advise.

    ``certain``: strong enough alone for the agent's bounded fence. ``condition``: opens a standing state.
    ``vendor``: the vendor's own bucket where it has one; ``differs``: why ours is another.
    ``outlives``: whether a reset, a reboot, a power cycle ends the fault; ``remains``: what stays behind of it.
    ``discriminator``: the event fields that tell two events of this code on one GPU apart.
    ``blocks``: while it stands nothing new is placed there, though nothing is held for it.
    ``source``: where the facts come from.
    """

    code: str
    title: str
    severity: Severity
    recovery: Recovery
    scope: Scope = Scope.GPU
    certain: bool = False
    condition: bool = True
    blocks: bool = False
    clears_on: ClearsOn = ClearsOn.RESET
    outlives: Outlives = Outlives.NOTHING
    remains: str | None = None
    discriminator: tuple[str, ...] = ()
    vendor: str | None = None
    differs: str | None = None
    source: str = ""
