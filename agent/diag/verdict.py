"""What a test says: pass, problem or unknown, and why; and of whom the question was."""

from typing import Any

import msgspec

from vocab.readings import Readings

CANARY = "canary"  # the name of every check with a known answer that gave another one


class Subject(msgspec.Struct, frozen=True):
    """The GPU under test: its board's name and its last readings, as far as they are known."""

    gpu: str
    board: str | None = None
    readings: Readings | None = None


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``check`` names the check where it is not the test's own name."""

    result: str
    text: str | None = None
    code: str | None = None
    readings: dict[str, Any] | None = None
    check: str | None = None


def passed(text: str | None = None, readings: dict[str, Any] | None = None) -> Verdict:
    """It is well."""
    return Verdict(result="pass", text=text, readings=readings)


def unknown(text: str, readings: dict[str, Any] | None = None) -> Verdict:
    """Nothing is proven."""
    return Verdict(result="unknown", text=text, readings=readings)


def problem(
    text: str, code: str | None = None, readings: dict[str, Any] | None = None, *, check: str | None = None
) -> Verdict:
    """The GPU is not as it should be."""
    return Verdict(result="problem", text=text, code=code, readings=readings, check=check)
