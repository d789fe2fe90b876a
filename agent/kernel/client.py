"""A program whose driver library is of another build than the kernel module: the driver refuses it.

Two texts (R390 to R595), each told in four or five lines; the newer one names the program. Syslog daemons that escape
what cannot be printed write the ends of lines as ``#012``.
"""

import re
from typing import Any

from agent.kernel.parsed import Kind

Parts = dict[str, Any]

CLIENT = "API mismatch: the client"

_VERSION = r"(\d{1,4}(?:[.-]\d{1,6}){1,4})"
_REFUSED = re.compile(
    rf"{CLIENT} (?:'(.{{1,64}}?)' \(pid (\d{{1,10}})\) )?has the version {_VERSION}, "
    rf"but this kernel module has the version {_VERSION}"
)
_ENDS = re.compile(r"(?:#012| |\n)(?:NVRM: )?[ \n]{0,4}")


def refused(text: str) -> Parts | None:
    """Both versions, and which program it was where the driver says so."""
    if not text.startswith(CLIENT):
        return None
    found = _REFUSED.match(_ENDS.sub(" ", text[:600]))
    if not found:
        return None
    return {
        "kind": Kind.API_MISMATCH,
        "name": found[1],
        "pid": int(found[2]) if found[2] else None,
        "text": f"a program's driver library is {found[3]}, the kernel module is {found[4]}",
        "fields": {"library": found[3], "kernel": found[4]},
    }
