"""Logs to standard error: ``key=value`` for people, JSON when asked. Extra fields come by ``extra=``.

Ids that join lines across processes: event_id, action_id, token, incident, replica, gpu, node.
"""

import logging
import sys

import msgspec

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class KeyValue(logging.Formatter):
    """``2026-01-01T00:00:00+0000 INFO agent: message key=value``."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S%z")

    def format(self, record: logging.LogRecord) -> str:
        """One line, with the record's extra fields behind it."""
        text = super().format(record)
        pairs = " ".join(f"{key}={value}" for key, value in _extras(record).items())
        return f"{text} {pairs}" if pairs else text


class Json(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """The record and its extra fields as one object."""
        body: dict[str, object] = {
            "at": record.created,
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            body["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(body, enc_hook=str).decode()


def set_up(*, json: bool = False, level: str = "INFO") -> None:
    """Send all logs of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Json() if json else KeyValue())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("aiohttp.access").setLevel(logging.WARNING)
