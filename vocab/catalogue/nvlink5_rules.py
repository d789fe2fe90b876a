"""The vendor's decode sheet for Xids 144 to 150 (catalogue of 2025-10), one row a unit, sub-code and verdict."""

from typing import NamedTuple


class Rule(NamedTuple):
    """One row. ``statuses``: error status words it is for, empty for any. ``promotable``: a bit makes it a reset."""

    names: tuple[str, ...]
    old_unit: int
    new_unit: int
    subcode: int
    statuses: tuple[int, ...]
    immediate: str
    then: str
    promotable: bool = False


# fmt: off
RULES: dict[int, tuple[Rule, ...]] = {
    144: (
        Rule(("SAW_MVB",), 1, 1, 0, (0x1, 0x8), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("SAW_MVB",), 1, 1, 0, (0x2, 0x10), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("SAW_MVB",), 1, 1, 0, (0x4, 0x20), "IGNORE", "IGNORE"),
    ),
    145: (
        Rule(("RLW_CTRL",), 3, 3, 0, (0x80000000,), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("RLW_REMAP",), 4, 4, 0, (0x1, 0x2), "XID_154_EVAL", "CONTACT_SUPPORT"),
        Rule(("RLW_REMAP",), 4, 4, 0, (0x4, 0x8, 0x10, 0x20), "XID_154_EVAL", "CHECK_NVLINK_FAILURE_FLOW"),
        Rule(("RLW_REMAP",), 4, 4, 0, (0x40, 0x80), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("RLW_REMAP",), 4, 4, 0, (0x100, 0x200), "IGNORE", "IGNORE"),
        Rule(("RLW_REMAP",), 4, 4, 0, (0x80000000,), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("RLW_RSPCOL",), 5, 5, 0, (0x1,), "IGNORE", "IGNORE"),
        Rule(("RLW_RSPCOL",), 5, 5, 0, (0x2,), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("RLW_RSPCOL",), 5, 5, 0, (0x80000000,), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("RLW_RXPIPE",), 6, 6, 0, (0x1, 0x2, 0x4), "IGNORE", "CONTACT_SUPPORT", promotable=True),
        Rule(("RLW_RXPIPE",), 6, 6, 0, (0x8, 0x80000000), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("RLW_SRC_TRACK",), 7, 7, 0, (0x1, 0x10, 0x20), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("RLW_SRC_TRACK",), 7, 7, 0, (0x2,), "IGNORE", "IGNORE"),
        Rule(("RLW_SRC_TRACK",), 7, 7, 0, (0x4, 0x8), "XID_154_EVAL", "IGNORE"),
        Rule(("RLW_SRC_TRACK",), 7, 7, 0, (0x80000000,), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("RLW_TAGSTATE",), 8, 8, 0, (0x1, 0x10000), "IGNORE", "IGNORE"),
        Rule(("RLW_TAGSTATE",), 8, 8, 0, (0x2, 0x20000, 0x100000), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("RLW_TAGSTATE",), 8, 8, 0, (0x80000000,), "IGNORE", "CONTACT_SUPPORT"),
    ),
    146: (
        Rule(("TLW_CTRL",), 9, 9, 0, (0x1,), "IGNORE", "IGNORE"),
        Rule(("TLW_CTRL",), 9, 9, 0, (0x2, 0x80000000), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("TLW_CTRL",), 9, 9, 0, (0x4,), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("TLW_RX", "TLW_RX_PIPE0"), 10, 10, 0, (0x1,), "IGNORE", "IGNORE"),
        Rule(("TLW_RX", "TLW_RX_PIPE0"), 10, 10, 0, (0x2, 0x80000000), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("TLW_RX", "TLW_RX_PIPE0"), 10, 10, 0, (0x4,), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("TLW_RX", "TLW_RX_PIPE1"), 10, 11, 0, (0x1,), "IGNORE", "IGNORE"),
        Rule(("TLW_RX", "TLW_RX_PIPE1"), 10, 11, 0, (0x2, 0x80000000), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("TLW_RX", "TLW_RX_PIPE1"), 10, 11, 0, (0x4,), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("TLW_TX", "TLW_TX_PIPE0"), 11, 12, 0, (0x1,), "IGNORE", "IGNORE"),
        Rule(("TLW_TX", "TLW_TX_PIPE0"), 11, 12, 0, (0x2, 0x80000000), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("TLW_TX", "TLW_TX_PIPE0"), 11, 12, 0, (0x4,), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("TLW_TX", "TLW_TX_PIPE1"), 11, 13, 0, (0x1,), "IGNORE", "IGNORE"),
        Rule(("TLW_TX", "TLW_TX_PIPE1"), 11, 13, 0, (0x2, 0x80000000), "IGNORE", "CONTACT_SUPPORT"),
        Rule(("TLW_TX", "TLW_TX_PIPE1"), 11, 13, 0, (0x4,), "RESET_GPU", "CONTACT_SUPPORT"),
    ),
    147: (
        Rule(("TREX",), 12, 14, 0, (0x1, 0x80000000), "IGNORE", "CONTACT_SUPPORT"),
    ),
    148: (
        Rule(("NVLPW_CTRL", "NVLPW"), 0, 15, 0, (0x80000000,), "IGNORE", "CONTACT_SUPPORT"),
    ),
    149: (
        Rule(("NETIR", "NETIR_INT"), 0, 24, 0, (), "RESET_GPU", "SYMPATHETIC_REPORT_SOLO"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 0, (), "RESET_GPU", "SYMPATHETIC_REPORT_SOLO"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 1, (), "RESET_GPU", "REPORT_ISSUE (if seen >1 per day)"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 2, (), "RESET_GPU", "INVESTIGATE_LINK_SI"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 4, (), "RESET_GPU", "INVESTIGATE_LINK_SI"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 10, (), "RESET_GPU", "INVESTIGATE_LINK_SI"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 15, (), "RESET_GPU", "INVESTIGATE_SW_USER"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 16, (), "RESET_GPU", "INVESTIGATE_SW_USER_LINK_SI"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 17, (), "RESET_GPU", "INVESTIGATE_SW_USER"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 18, (), "RESET_GPU", "INVESTIGATE_SW_USER_LINK_SI"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 21, (), "RESET_GPU", "INVESTIGATE_PEER_DEVICE"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 22, (), "RESET_GPU", "INVESTIGATE_SW_USER"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 32, (), "RESET_GPU", "INVESTIGATE_PEER_DEVICE"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 33, (), "RESET_GPU", "INVESTIGATE_PEER_DEVICE"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 34, (), "RESET_GPU", "INVESTIGATE_PEER_DEVICE"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 35, (), "RESET_GPU", "INVESTIGATE_PEER_DEVICE"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 36, (), "RESET_GPU", "INVESTIGATE_PEER_DEVICE"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 37, (), "RESET_GPU", "INVESTIGATE_PEER_DEVICE"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 38, (), "IGNORE", "INVESTIGATE_SW/USER"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 40, (), "IGNORE", "INVESTIGATE_HOST"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 42, (), "RESET_GPU", "INVESTIGATE_LINK_SI_AND_CABLES"),
        Rule(("NETIR_LINK_EVT", "NETIR_LINK_DOWN"), 14, 17, 43, (), "RESET_GPU", "INVESTIGATE_LINK_SI_AND_CABLES"),
        Rule(("NETIR_BER_EVENT",), 17, 19, 0, (0x0, 0x1, 0x2, 0x3), "IGNORE", "INVESTIGATE_LINK_SI_AND_CABLES"),
        Rule(("NETIR_MFDE_EVENT",), 18, 20, 0, (0x1, 0x4, 0x5, 0x7), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("NETIR_MFDE_EVENT",), 18, 20, 0, (0x3,), "IGNORE", "IGNORE"),
    ),
    150: (
        Rule(("MSE degraded",), 0, 0, 0, (0x0, 0xffffffff), "RESET_GPU", "CONTACT_SUPPORT"),
        Rule(("MSE_WATCHDOG",), 0, 0, 0, (0x0,), "RESET_GPU", "CONTACT_SUPPORT"),
    ),
}
# fmt: on
