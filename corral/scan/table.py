"""Events as a table for people: one line each, columns of fixed width."""

from vocab.events import Event

_TEXT = 100  # characters of the line that are shown
_FORM = "{when:<26}  {gpu:<14}  {code:<12}  {severity:<8}  {advice:<15}  {text}"

HEADER = _FORM.format(when="TIME", gpu="GPU", code="CODE", severity="SEVERITY", advice="ADVICE", text="LINE")


def line(event: Event) -> str:
    """One event. A time in seconds since boot stands where the log has no other."""
    when = event.at[:26].replace("T", " ") if event.at else ""
    if not when and event.kernel_s is not None:
        when = f"boot +{event.kernel_s:.6f} s"
    times = f"{event.count}x " if event.count > 1 else ""
    marks = "(injected) " if event.injected else ""
    return _FORM.format(
        when=when or "-",
        gpu=event.pci or event.device or "-",
        code=event.code,
        severity=event.severity,
        advice=event.recovery,
        text=times + marks + _plain(event.text or _seen(event)),
    )


def _seen(event: Event) -> str:
    """The line itself, for an event whose line carries no text of its own."""
    return next((evidence.line for evidence in event.evidence if evidence.line), "")


def _plain(text: str) -> str:
    """Control characters of a log must not reach a terminal."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: _TEXT + 1])
    return shown if len(shown) <= _TEXT else shown[: _TEXT - 1] + "…"
