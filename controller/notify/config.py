"""Where notices go: ``[[webhooks]]`` tables of ``controller.toml``.

[[webhooks]]
name = "tickets"                               # also the name of its position in the database
url = "https://tickets.example/hooks/corral"
events = ["incident_opened", "quarantined"]    # left out: all
template = "/etc/corral/ticket.json.j2"        # or "json" (the default), "alertmanager"
secret_file = "/etc/corral/tickets.secret"     # signs each notice
token_file = "/etc/corral/tickets.token"       # sent as Authorization: Bearer
"""

from typing import Annotated
from urllib.parse import urlsplit

import msgspec

from controller.notify.notice import What

BUILT_IN = ("json", "alertmanager")


class WebhookConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One table."""

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,40}$")]
    url: str
    events: tuple[What, ...] = ()
    template: str = "json"
    content_type: str = "application/json"
    secret_file: str | None = None
    token_file: str | None = None
    ca_file: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"webhooks: url = {self.url!r} of {self.name!r} must be https://… or http://…")
        if self.template not in BUILT_IN and not self.template.startswith("/"):
            known = ", ".join(BUILT_IN)
            raise ValueError(f"webhooks: template = {self.template!r} of {self.name!r}: {known}, or an absolute path")


class AlertmanagerConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[alertmanager]`` of ``controller.toml``. ``labels``: those by which alerts name a node; a silence for each."""

    url: str
    labels: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] = ("node",)
    token_file: str | None = None

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError(f"alertmanager: url = {self.url!r} must be http://… or https://…")
