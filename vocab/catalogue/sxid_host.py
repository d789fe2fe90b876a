"""SXids of the switch as a whole: host interface, temperature."""

from vocab.catalogue.sxid_form import Kind, Unit

K = Kind

# fmt: off
UNITS: tuple[Unit, ...] = (
    ("switch", (
        (10000, "first number of the unit", K.MARK, None),
        (10001, "switch register (PRI) access error", K.NOTED, "IGNORE"),
        (10002, "switch register (PRI) access timed out", K.NOTED, "IGNORE"),
        (10003, "interrupt without a handler", K.LINK, "RESET_FABRIC"),
        (10004, "thermal slowdown started or temperature warning", K.HOT, "CHECK_THERMALS"),
        (10005, "thermal slowdown ended", K.ENDED, "IGNORE"),
        (10006, "over-temperature shutdown", K.SHUTDOWN, "RESET_FABRIC"),
        (10007, "register access failed, switch likely off the bus", K.FABRIC, "RESET_FABRIC"),
        (10008, "firmware failed to start", K.FABRIC, "RESET_FABRIC"),
        (10009, "firmware is in recovery", K.SILENT, "IGNORE"),
        (10010, "trusted mode refused or failed", K.SIGNAL, "IGNORE"),
    )),
)
# fmt: on
