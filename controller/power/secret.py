"""The password of a BMC, read when it is needed: it may be renewed without a restart, and is in no argument or log."""

from pathlib import Path

from vocab.errors import Refused
from wire.server import read_token


def password(path: Path) -> str:
    """The first line of the file. Raises Refused if there is none, ConfigError if others may read it."""
    lines = (read_token(path) or "").splitlines()
    if not lines:
        raise Refused(f"{path} holds no password")
    return lines[0]
