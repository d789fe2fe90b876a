"""PCI addresses: one spelling, ``dddd:bb:dd`` in lower case, for all the ways in which they are written."""

import re

_FULL = re.compile(r"(?:([0-9a-f]{1,8}):)?([0-9a-f]{1,2}):([0-9a-f]{1,2})(?:\.[0-7])?")
_BUS_DEVICE = re.compile(r"00([0-9a-f]{2}):([0-9a-f]{2})")  # drivers up to about 2010 print four digits of bus, device


def pci_address(text: str) -> str | None:
    """``00000008:0A:00.0``, ``0008:0a:00`` -> ``0008:0a:00``; ``5d:00`` -> ``0000:5d:00``; None if it is no address.

    The function digit is dropped: a GPU is one device. Domains longer than four digits keep their length.
    """
    address = text.lower()
    if found := _BUS_DEVICE.fullmatch(address):
        return f"0000:{found[1]}:{found[2]}"
    if not (found := _FULL.fullmatch(address)):
        return None
    return f"{int(found[1] or '0', 16):04x}:{int(found[2], 16):02x}:{int(found[3], 16):02x}"
