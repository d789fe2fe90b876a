"""What the payloads of the NVLink Xids carry: 74 and 136 of generation 4 and older, 137, and 144 to 155 of NVLink 5."""

import re

from agent.kernel.reading import Fields

_FATAL_LINK = re.compile(r"NVLink: fatal error detected on link (\d{1,3})")
_TRAIN = re.compile(r"(?:Link training failed for link|failed to train link) (\d{1,3})")
_TRAIN_MASK = re.compile(r"Link training failed for links (0x[0-9a-f]{1,16})")
_PEER = re.compile(r"(\S{1,40}) interrupt hit on link (-?\d{1,3}) on GPU(\d{1,4})(?:: (.{1,200}))?")
_LINK = re.compile(r"\bLink (-?\d{1,3})")
_REGISTER = re.compile(r"0x[0-9a-fA-F]{1,16}")


def _words(text: str, start: int) -> tuple[list[str], bool]:
    """The hex words of a parenthesis that opens at ``start``, and whether it closes; nothing where none opens."""
    if text[start : start + 1] != "(":
        return [], False
    end = text.find(")", start)
    inside = text[start + 1 :] if end < 0 else text[start + 1 : end]
    return [word for word in inside.replace(",", " ").split() if _REGISTER.fullmatch(word)], end >= 0


def _registers(text: str, found: re.Match[str]) -> Fields:
    registers, whole = _words(text, found.end())
    return {"registers": registers} if whole else {"registers": registers, "truncated": True}


def link_error(text: str) -> Fields:
    """Xid 74: the link and its registers; ``truncated`` where the list is cut or missing."""
    if found := _FATAL_LINK.match(text):
        return {"link": int(found[1]), **_registers(text, found)}
    return training(text)


def training(text: str) -> Fields:
    """Xid 136: the link (or the mask of links) that could not be trained, and its registers where printed."""
    if found := _TRAIN.search(text):
        fields: Fields = {"link": int(found[1])}
        return {**fields, **_registers(text, found)} if text[found.end() : found.end() + 1] == "(" else fields
    if found := _TRAIN_MASK.search(text):
        return {"links": found[1], **_registers(text, found)}
    return {}


def peer_access(text: str) -> Fields:
    """Xid 137: the unit that refused an access, on which link of which GPU, and why."""
    found = _PEER.match(text)
    if not found:
        return {}
    return {"unit": found[1], "link": int(found[2]), "gpu_instance": int(found[3]), "reason": found[4]}


def nvlink5(text: str) -> Fields:
    """``UNIT Fatal|Nonfatal XC0 i0 Link 03 (intrinfo error_status debug…)``; the hex words have fixed places.

    ``link`` -1 is printed where no link is meant. ``injected``: a test tool raised it (``i`` is not zero).
    """
    tokens = text.split(None, 12)
    place = next((place for place, token in enumerate(tokens) if token in ("Fatal", "Nonfatal")), 0)
    if not place:
        return {}
    fields: Fields = {"unit": " ".join(tokens[:place]), "fatal": tokens[place] == "Fatal"}
    for token in tokens[place + 1 : place + 3]:
        if token.startswith("XC") and token[2:].isdecimal():
            fields["cross_contain"] = int(token[2:]) != 0
        elif token.startswith("i") and token[1:].isdecimal():
            fields["injected"] = int(token[1:]) != 0
    if link := _LINK.search(text):
        fields["link"] = int(link[1])
    words, whole = _words(text, text.find("("))
    if words:
        fields |= {"intrinfo": words[0], "subcode": int(words[0], 16) >> 20 & 0x3F}
        fields |= {"error_status": words[1], "debug": words[2:]} if len(words) > 1 else {}
    if words and not whole:
        fields["truncated"] = True
    return fields
