"""What we print fits the terminal: as wide as it is, as wide as COLUMNS says, and uncut into a pipe or file.

Words of nodes, logs and people may hold any character: none commands the terminal.
"""

import os
import shutil
import sys
import textwrap
from typing import Protocol

import click

USUAL = 80
LEAST = 40
HANG = 4  # further lines of one are set in by so much
_CONTROLS = {code: " " for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def columns() -> int | None:
    """How wide a line may be; None: as wide as it likes, for a program reads it."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return max(LEAST, int(given))
    try:
        return max(LEAST, shutil.get_terminal_size((USUAL, 24)).columns) if sys.stdout.isatty() else None
    except ValueError:  # it is closed
        return None


def width() -> int:
    """Columns; the usual ones where nobody says."""
    return columns() or USUAL


def fit(text: str, wide: int | None) -> str:
    """The text in lines of at most so many columns. A word that is longer is broken, so that nothing is lost."""
    if wide is None:
        return text
    return "\n".join(part for line in text.split("\n") for part in _wrapped(line, wide))


def _wrapped(line: str, wide: int) -> list[str]:
    if len(line) <= wide:
        return [line]
    indent = " " * min(len(line) - len(line.lstrip()) + HANG, wide // 2)
    return textwrap.wrap(line, wide, subsequent_indent=indent, drop_whitespace=True, break_on_hyphens=False) or [""]


def plain(text: str) -> str:
    """The text without what a terminal would obey."""
    return text.translate(_CONTROLS)


def say(told: str | bytes) -> None:
    """Print text so that it fits; bytes (a document) as they are."""
    click.echo(fit(plain(told), columns()) if isinstance(told, str) else told)


class Out(Protocol):
    """Where text goes."""

    def write(self, text: str, /) -> int:
        """Take it."""


class Fitted:
    """A stream whose lines fit."""

    def __init__(self, out: Out) -> None:
        self._out = out
        self._wide = columns()

    def write(self, text: str) -> int:
        """Whole lines."""
        return self._out.write(fit(plain(text), self._wide))
