"""What NVIDIA's tools say of a board whose InfoROM, its own store of serials and repairs, is corrupted."""

import re
from typing import Any

from agent.kernel.parsed import Kind
from vocab.pci import pci_address

Parts = dict[str, Any]

CORRUPTED = "infoROM is corrupted"

_CORRUPTED = re.compile(rf"(?:NVRM: )?(?:WARNING: )?{CORRUPTED} at gpu ([0-9a-fA-F:.]{{7,20}})", re.IGNORECASE)


def corrupted(text: str) -> Parts | None:
    """A GPU whose InfoROM is corrupted (nvidia-smi prints it below its table, and where it is logged it is as said)."""
    found = _CORRUPTED.match(text)
    return {"kind": Kind.INFOROM, "pci": pci_address(found[1]), "text": text[:400]} if found else None
