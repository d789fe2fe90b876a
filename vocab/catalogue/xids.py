"""Every public Xid: 1 to 177 and 185. Numbers that are not here get the generic row of ``codes``.

Severity and recovery are what we advise when the line stands alone; the judge makes them harsher or milder by
what else it knows: the sub-code of an NVLink 5 error, the registers of a 74, the cause of a 45, the ``to`` of a 154.
The vendor's bucket is the *immediate* action of its catalogue.
"""

from vocab.catalogue import xid_engines, xid_firmware, xid_house, xid_links, xid_memory
from vocab.catalogue.row import CodeRow
from vocab.catalogue.xid_form import expand

_TABLES = (xid_engines, xid_memory, xid_links, xid_firmware, xid_house)

# Strong enough alone for the agent's bounded fence: the GPU is gone, its firmware is dead, or its memory is not to be
# trusted. Never 13, 31, 43, 45, 63, 92 or 94: those are of one process, or are notes about a repair that works.
CERTAIN = frozenset({46, 48, 62, 64, 79, 95, 109, 110, 119, 120, 140, 143, 158, 167, 169, 175})

# Fields that tell two events of one code on one GPU apart; without them repeats within a minute fold into one.
DISCRIMINATORS: dict[int, tuple[str, ...]] = {
    13: ("pid", "gpc", "tpc", "sm"),  # repeats on one SM point to hardware, repeats all over to the program
    31: ("pid", "engine", "client"),
    43: ("pid",),
    45: ("pid",),
    48: ("phys_addr",),  # joins 48 to the 63 or 64 of the same address
    63: ("phys_addr",),
    64: ("phys_addr",),
    69: ("pid",),
    74: ("link",),
    94: ("pid", "unit", "codes"),
    95: ("pid", "unit", "codes"),
    109: ("pid",),
    136: ("link",),
    137: ("link",),
    **dict.fromkeys(range(144, 151), ("subcode", "link")),
    154: ("to",),
    155: ("link",),
}

DIFFERS: dict[int, str] = {
    38: "the vendor ignores it at first and then asks support; the GPU cannot switch work, so we ask at once",
    45: "the vendor's workflow has no verdict; alone we look (fabric manager), with a cause it is none",
    48: "the vendor's workflow resets at once or after a drain; we always drain first, harsher when the driver says so",
    54: "the vendor looks at the mechanics; only a person can",
    64: "the reset is ours too, but only a person can say that a GPU without spares may serve again; "
    "of a row that already waits for its reset it is only a note",
    74: "the vendor's workflow goes by the registers of the link; without them a person looks",
    78: "the vendor asks for newer software; which, a person decides",
    79: "the vendor restarts the machine, as we do, but only the one GPU is held: its neighbours work on",
    110: "the vendor resets; the driver source says only a cold start clears the latch, so it stands till reboot",
    144: "the vendor's decode sheet gives the verdict by unit, sub-code and error status: see nvlink5",
    145: "the vendor's decode sheet gives the verdict by unit, sub-code and error status: see nvlink5",
    146: "the vendor's decode sheet gives the verdict by unit, sub-code and error status: see nvlink5",
    147: "the vendor's decode sheet knows only harmless rows of it",
    148: "the vendor's decode sheet knows only harmless rows of it",
    149: "the vendor's decode sheet gives the verdict by unit, sub-code and error status: see nvlink5",
    150: "the vendor's decode sheet has this one row: reset",
    151: "the vendor restarts the guest that owns the GPU; of our words that is a reboot of the (guest) node",
    154: "no fault of its own: the recovery is the one that the line states",
    157: "the vendor lets work go on; the fault stays where it is, so a person decides",
    159: "the vendor resets only where unified memory or vGPU is used; a person knows that",
    161: "the vendor lets work go on; the failed repair leaves the fault in place, so a person decides",
}

CATALOGUE = "NVIDIA Xid catalogue, 2025-10"
UNUSED = "NVIDIA Xid catalogue, 2025-10 (listed as unused)"
HEADER = "names and texts of the open driver (R580 and newer); recovery inferred"

XIDS: dict[int, CodeRow] = {}
for _table in _TABLES:
    for _rows, _source in ((_table.LISTED, CATALOGUE), (_table.UNUSED, UNUSED), (_table.UNLISTED, HEADER)):
        XIDS |= expand(_rows, _source, certain=CERTAIN, discriminators=DISCRIMINATORS, differs=DIFFERS)
XIDS = dict(sorted(XIDS.items()))
