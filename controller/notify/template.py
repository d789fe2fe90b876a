"""What a notice looks like on the wire: built-in forms, or a jinja2 template in a sandbox.

A template sees ``notice`` and no more: it can reach no file, no module and no attribute of Python.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from controller.notify.notice import Notice, What
from vocab.errors import ConfigError, InputError

MOST_BYTES = 256 * 1024
Render = Callable[[Notice], bytes]


class _Sandbox(ImmutableSandboxedEnvironment):
    """One in which nothing can be made large by a multiplication, either."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Refuse."""
        raise SecurityError(f"{operator} is not for templates")


def as_json(notice: Notice) -> bytes:
    """The notice itself."""
    return msgspec.json.encode(notice)


def as_alertmanager(notice: Notice) -> bytes:
    """As Alertmanager tells its receivers (version 4): an incident fires until it is closed, a hold until lifted."""
    over = notice.what in {What.INCIDENT_CLOSED, What.HOLD_LIFTED}
    status = "resolved" if over else "firing"
    labels = {
        "alertname": f"Corral{notice.what.partition('_')[0].capitalize()}",
        "subject": notice.subject,
        "severity": notice.severity or "warning",
        **({"incident": notice.incident} if notice.incident else {}),
        **({"code": notice.code} if notice.code else {}),
    }
    alert = {
        "status": status,
        "labels": labels,
        "annotations": {"summary": notice.summary} | ({"bundle": notice.bundle} if notice.bundle else {}),
        "startsAt": notice.at,
        "endsAt": notice.at if over else "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": notice.key,
    }
    group = notice.incident or notice.subject
    return msgspec.json.encode(
        {
            "version": "4",
            "groupKey": f"corral:{group}",
            "truncatedAlerts": 0,
            "status": status,
            "receiver": "corral",
            "groupLabels": {"incident": group},
            "commonLabels": labels,
            "commonAnnotations": alert["annotations"],
            "externalURL": "",
            "alerts": [alert],
        }
    )


def load(template: str) -> Render:
    """The form of this name, or that of the file at this path. Raises ConfigError."""
    if template in _BUILT_IN:
        return _BUILT_IN[template]
    try:
        text = Path(template).read_text()
    except OSError as error:
        raise ConfigError(f"webhooks: template {template} cannot be read: {error.strerror}") from error
    sandbox = _Sandbox(undefined=jinja2.StrictUndefined, autoescape=False)
    try:
        made = sandbox.from_string(text)
    except jinja2.TemplateSyntaxError as error:
        raise ConfigError(f"webhooks: template {template}, line {error.lineno}: {error.message}") from error

    def render(notice: Notice) -> bytes:
        try:
            body = made.render(notice=msgspec.to_builtins(notice)).encode()
        except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise InputError(f"template {template}: {error}") from error
        if len(body) > MOST_BYTES:
            raise InputError(f"template {template} makes {len(body)} bytes; a notice has {MOST_BYTES} at most")
        return body

    return render


_BUILT_IN: dict[str, Render] = {"json": as_json, "alertmanager": as_alertmanager}
