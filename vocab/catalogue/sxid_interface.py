"""SXids of NVLink control and interface."""

from vocab.catalogue.sxid_form import Kind, Unit

K = Kind

# fmt: off
UNITS: tuple[Unit, ...] = (
    ("NVLink control", (
        (17000, "first number of the unit", K.MARK, None),
        (17001, "ingress corrected ECC limit", K.SILENT, "IGNORE"),
        (17002, "ingress header uncorrectable ECC", K.SILENT, "POTENTIALLY_FATAL"),
        (17003, "ingress data uncorrectable ECC", K.SILENT, "POTENTIALLY_FATAL"),
        (17004, "ingress buffer error", K.SILENT, "IGNORE"),
        (17005, "egress corrected ECC limit", K.SILENT, "IGNORE"),
        (17006, "egress header uncorrectable ECC", K.SILENT, "POTENTIALLY_FATAL"),
        (17007, "egress data uncorrectable ECC", K.SILENT, "POTENTIALLY_FATAL"),
        (17008, "egress buffer error", K.SILENT, "IGNORE"),
    )),
    ("NVLink interface", (
        (18000, "first number of the unit", K.MARK, None),
        (18001, "data-link protocol error", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18002, "data was poisoned", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18003, "flow control error", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18004, "response timeout", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18005, "target error", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18006, "unexpected response", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18007, "receiver overflow", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18008, "malformed packet", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18009, "stomped packet received", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18010, "unsupported request", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18011, "uncorrectable internal error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (18012, "PHY receiver error", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18013, "bad AN0 packet", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18014, "replay timeout", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18015, "advisory error", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18016, "correctable internal error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (18017, "header overflow", K.SILENT, "INVESTIGATE_LINK_SI"),
        (18018, "reset sequencer: PHY arbiter timed out", K.CONTAINED, "INVESTIGATE_LINK_SI"),
        (18019, "reset sequencer: PLL timed out", K.CONTAINED, "INVESTIGATE_LINK_SI"),
        (18020, "clock control: illegal request", K.CONTAINED, "INVESTIGATE_LINK_SI"),
    )),
    ("NVLink interface of a link", (
        (25000, "first number of the unit", K.MARK, None),
        (25001, "illegal link-state request", K.NOTED, "IGNORE"),
        (25002, "failed micro-controller request", K.NOTED, "IGNORE"),
        (25003, "reserved request value", K.NOTED, "IGNORE"),
        (25004, "link state written while busy", K.NOTED, "IGNORE"),
        (25005, "link state request timeout", K.NOTED, "IGNORE"),
        (25006, "write to locked system reg error", K.NOTED, "IGNORE"),
        (25007, "sleep request while the link was active", K.LINK, "IGNORE"),
        (25008, "reset sequencer: PHY control timed out", K.LINK, "INVESTIGATE_LINK_SI"),
        (25009, "reset sequencer: clock control timed out", K.LINK, "INVESTIGATE_LINK_SI"),
        (25010, "automatic link initialisation training failed", K.CONTAINED, "INVESTIGATE_LINK_SI"),
    )),
)
# fmt: on
