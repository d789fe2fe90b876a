"""What the driver prints for each Xid, in the form of the branches R510 to R565.

One row a code: the payloads of its burst, one record each.
Texts follow lines of public reports; registers, addresses and channels are made up. ``{bus}`` is the GPU's
address, ``{index}`` its number, ``{link}`` a link, ``{address}`` a memory address.
"""

GENERIC = ("Unspecified fault reported",)

_FAULT_31 = (
    "Ch 00000007, intr 00000000. MMU Fault: ENGINE GRAPHICS GPCCLIENT_T1_6 faulted @ 0x7f5a_e7504000."
    " Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_READ"
)
_FAULT_48 = (
    "An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer"
    " at physAddr {address} partition 4, subpartition 1."
)
_FAULT_119 = (
    "Timeout after 6s of waiting for RPC response from GPU{index} GSP!"
    " Expected function 76 (GSP_RM_CONTROL) (0x20801702 0x4)."
)

XID_TEXTS: dict[int, tuple[str, ...]] = {
    13: (
        "Graphics SM Warp Exception on (GPC 5, TPC 3, SM 1): Out Of Range Address",
        "Graphics Exception: ESR 0x52de48=0xc13000e 0x52de50=0x20 0x52de44=0xd3eff2 0x52de4c=0x17f",
    ),
    31: (_FAULT_31,),
    32: ("Channel ID 0000000d intr0 00040000",),
    43: ("Ch 00000008",),
    45: ("Ch 00000008",),
    48: (_FAULT_48,),
    62: ("2027a3f0 2027ac2a 2027bd16 2027c4d4 2027cc3c 2027d186 00000000 00000000",),
    63: ("Row Remapper: New row ({address}) marked for remapping, reset gpu to activate.",),
    64: ("Row Remapper Error: ({address}) - All reserved rows for bank are remapped",),
    69: ("Class Error: ChId 000c, Class 0000cbc0, Offset 000002b4, Data 00000000, ErrorCode 00000004",),
    74: ("NVLink: fatal error detected on link {link}(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)",),
    79: ("GPU has fallen off the bus.",),
    92: ("Disabling ECC single-bit error interrupts in framebuffer at logical partition 4, due to high error rate",),
    94: ("Contained: SM (0x1). RST: No, D-RST: No",),
    95: ("Uncontained: LTC TAG (0x2,0x1). RST: Yes, D-RST: No",),
    109: ("Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005",),
    119: (_FAULT_119,),
    120: ("GSP task exception: store access page fault (cause:0xf) @ pc:0x13ebd80, partition:2#0, task:3",),
    154: ("GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",),
}

FALLEN_OFF = (  # printed behind the Xid when the driver finds the GPU gone
    "NVRM: GPU {bus}.0: GPU has fallen off the bus.",
    "NVRM: GPU {bus}.0: GPU serial number is {serial}.",
)
INTRODUCTION = (  # printed before the first Xid of a GPU in a boot
    "NVRM: GPU at PCI:{bus}: {uuid}",
    "NVRM: GPU Board Serial Number: {serial}",
)


def xid_line(bus: str, code: int, payload: str, pid: int | None, process: str | None) -> str:
    """One Xid record's text; a process that the driver does not know is printed as unknown."""
    owner = f"pid={pid}, name={process or '<unknown>'}" if pid is not None else "pid='<unknown>', name=<unknown>"
    return f"NVRM: Xid (PCI:{bus}): {code}, {owner}, {payload}"
