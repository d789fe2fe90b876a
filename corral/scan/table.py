"""Events as a table for people, columns of fixed width: one line each, or two where a terminal is no wider."""

from vocab.events import Event

_TEXT = 100  # characters of the line that are shown
_WIDE, _NARROW = 26, 19  # characters of a time: to the microsecond, to the second
_INDENT = "    "
_FORM = "{gpu:<14}  {code:<12}  {severity:<8}  {advice:<15}"
_FITS = 2 + _WIDE + len(_FORM.format(gpu="", code="", severity="", advice="")) + 2 + _TEXT


def header(columns: int | None) -> str:
    """The names of the columns. ``columns``: how wide a line may be; None: as wide as it likes."""
    return _row("TIME", _FORM.format(gpu="GPU", code="CODE", severity="SEVERITY", advice="ADVICE"), "LINE", columns)


def line(event: Event, columns: int | None) -> str:
    """One event. A time in seconds since boot stands where the log has no other."""
    when = event.at[:_WIDE].replace("T", " ") if event.at else ""
    if not when and event.kernel_s is not None:
        when = f"boot +{event.kernel_s:.6f} s"
    times = f"{event.count}x " if event.count > 1 else ""
    marks = "(injected) " if event.injected else ""
    row = _FORM.format(
        gpu=event.pci or event.device or "-", code=event.code, severity=event.severity, advice=event.recovery
    )
    return _row(when or "-", row, times + marks + _plain(event.text or _seen(event)), columns)


def _row(when: str, row: str, text: str, columns: int | None) -> str:
    """In one line, or in two with what the second one cannot hold cut off."""
    if columns is None or columns >= _FITS:
        return f"{when:<{_WIDE}}  {row}  {text}"
    text = text if len(text) <= columns - len(_INDENT) else text[: columns - len(_INDENT) - 1] + "…"
    return f"{when[:_NARROW]:<{_NARROW}}  {row.rstrip()}\n{_INDENT}{text}"


def _seen(event: Event) -> str:
    """The line itself, for an event whose line carries no text of its own."""
    return next((evidence.line for evidence in event.evidence if evidence.line), "")


def _plain(text: str) -> str:
    """Control characters of a log must not reach a terminal."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: _TEXT + 1])
    return shown if len(shown) <= _TEXT else shown[: _TEXT - 1] + "…"
