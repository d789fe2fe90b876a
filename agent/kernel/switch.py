"""What an NVSwitch writes: SXids, three lines an error (a headline, a Severity line, one or more Data lines)."""

import re
from typing import Any

from agent.kernel.parsed import Kind
from vocab.pci import pci_address

_HEAD = re.compile(r"nvidia-nvswitch(\d{1,3}): SXid \((?:PCI:)?([^)]{0,40})\): (\d{1,6}), ?")
_SEVERITY_LINE = re.compile(r"Severity (\d) Engine instance (\d{1,4}) Sub-engine instance (\d{1,4})")
_DATA = re.compile(r"Data \{([0-9a-fA-Fx, ]{0,400})")
_WORDS = ("Fatal", "Non-fatal", "Correctable")
_LINK = re.compile(r"Link (\d{1,3})(?: |$)")
_INSTANCE = re.compile(r", instance=(\d{1,6}), chiplet=(\d{1,6})$")
_FIRST = " (First)"
_MARK = "Link "


def sxid(text: str) -> dict[str, Any] | None:
    """The parts of one SXid line, None if it is none. The driver prints severity 0 for non-fatal, 1 for fatal."""
    head = _HEAD.match(text)
    if not head:
        return None
    form, fields = _form(text[head.end() :])
    return {
        "kind": Kind.SXID,
        "pci": pci_address(head[2]),
        "nvswitch": int(head[1]),
        "sxid": int(head[3]),
        "form": form,
        "fields": fields,
    }


def _form(rest: str) -> tuple[str, dict[str, Any]]:
    if found := _SEVERITY_LINE.match(rest):
        severity = "non-fatal" if found[1] == "0" else "fatal"
        return "severity", {"severity": severity, "engine": int(found[2]), "subengine": int(found[3])}
    if found := _DATA.match(rest):
        words = [word for word in found[1].replace(",", " ").split() if word]
        return "data", {"data": words} if "}" in rest else {"data": words, "truncated": True}
    word, _, message = rest.partition(",")
    if word in _WORDS:
        return "text", _headline(word.lower(), message.removeprefix(" "))
    return "bare", {"severity": None, "link": None, "text": rest}


def _headline(severity: str, message: str) -> dict[str, Any]:
    """``Link 32 egress … (First)``; a line cut before its text keeps what there is."""
    link = _LINK.match(message)
    text = message[link.end() :] if link else message
    fields: dict[str, Any] = {"severity": severity, "link": int(link[1]) if link else None}
    if not text or (not link and _MARK.startswith(text)):
        return {**fields, "text": None, "truncated": True}
    if instance := _INSTANCE.search(text, max(0, len(text) - 40)):
        fields |= {"instance": int(instance[1]), "chiplet": int(instance[2])}
        text = text[: instance.start()]
    return {**fields, "text": text.removesuffix(_FIRST), "first": text.endswith(_FIRST)}
