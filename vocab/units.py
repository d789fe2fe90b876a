"""Units of systemd that a site has written itself: which of them Corral was given leave to stop and start. Pure."""

from collections.abc import Iterable

KIND = "systemd-unit"  # the kind of owner that such a unit is


def template_of(unit: str) -> str | None:
    """``vllm@.service`` of ``vllm@0.service``; None of a unit that is no instance."""
    prefix, at, rest = unit.partition("@")
    instance, dot, suffix = rest.rpartition(".")
    return f"{prefix}@.{suffix}" if at and dot and instance else None


def is_allowed(unit: str, allowed: Iterable[str]) -> bool:
    """Whether a unit is named: by its whole name, or by its template."""
    return "@." not in unit and bool({unit, template_of(unit)} & set(allowed))  # a template itself is no unit
