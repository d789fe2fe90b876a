"""``dmesg --json`` as the lines that ``dmesg`` prints without it: one object, an entry's fields a line each."""

import re
from collections.abc import Iterator
from io import BufferedIOBase

import msgspec

DMESG = b'"dmesg":'
_MOST = 256 * 1024  # bytes of a line; kernel records are cut at about one thousand
_FIELD = re.compile(r'\s{0,40}"(time|msg)": {0,20}(.{1,4000}?),?\s*$')


def dmesg(stream: BufferedIOBase) -> Iterator[str]:
    """Each entry with its stamp: seconds since boot, or a time as ``--time-format`` had it."""
    stamp = ""
    while line := stream.readline(_MOST):
        found = _FIELD.match(line.decode(errors="replace"))
        if found is None:
            continue
        value = _value(found[2])
        if found[1] == "time":
            stamp = value
        else:
            yield f"{_before(stamp)}{value}"
            stamp = ""


def _value(text: str) -> str:
    try:
        return str(msgspec.json.decode(text)) if text.startswith('"') else text
    except msgspec.DecodeError:
        return text.strip('"')


def _before(stamp: str) -> str:
    if not stamp:
        return ""
    return f"{stamp} " if stamp[:4].isdecimal() and stamp[4:5] == "-" else f"[{stamp}] "
