"""SXids of the data-link and physical layer of a link."""

from vocab.catalogue.sxid_form import Kind, Unit

K = Kind

# fmt: off
UNITS: tuple[Unit, ...] = (
    ("data link", (
        (20000, "first number of the unit", K.MARK, None),
        (20001, "transmit replays", K.NOTED, "IGNORE"),
        (20002, "transmit recovery, short form", K.NOTED, "IGNORE"),
        (20003, "transmit recovery, long form", K.SILENT, "IGNORE"),
        (20004, "transmit-side RAM fault", K.LINK, "INVESTIGATE_LINK_SI"),
        (20005, "transmit-side interface fault", K.LINK, "INVESTIGATE_LINK_SI"),
        (20006, "transmit fault in a sublink change", K.LINK, "RUN_FIELDDIAG"),
        (20007, "receive fault in a sublink change", K.LINK, "RUN_FIELDDIAG"),
        (20008, "receive data-link protocol fault", K.LINK, "IGNORE"),
        (20009, "receive error rate, short window", K.SIGNAL, "CHECK_LINK_MECHANICAL_CONNECTIONS"),
        (20010, "receive error rate, long window", K.NOTED, "CHECK_LINK_MECHANICAL_CONNECTIONS"),
        (20011, "receive trigger of the link analyser", K.NOTED, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20012, "receive CRC counter: broken or disturbed connection", K.CABLE, "CHECK_LINK_MECHANICAL_CONNECTIONS"),
        (20013, "link training fault", K.SILENT, "IGNORE"),
        (20014, "link training protocol error", K.LINK, "IGNORE"),
        (20015, "request to the link micro-controller", K.SILENT, "IGNORE"),
        (20016, "FIFO drain error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20017, "constant detect error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20018, "off-to-safe: link detect error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20019, "safe-to-no: link detect error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20020, "scrambler lock error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20021, "symbol lock error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20022, "symbol alignment end error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20023, "FIFO skew error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20024, "train-to-safe: link detect error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20025, "high-speed-to-safe: link detect error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20026, "fence error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20027, "safe: no link detect error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20028, "e-to-safe: link detect error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20029, "receiver power error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20030, "transmitter power error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20031, "deadline error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20032, "transmit high-speed to low-power error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20033, "receive high-speed to low-power error", K.SILENT, "UNEXPECTED_ERR_REPORT_ISSUE"),
        (20034, "link training fault on the way up: the link is down", K.LINK, "RESET_GPU"),
        (20035, "link training fault on the way down", K.LINK, "IGNORE"),
        (20036, "PHY A error", K.LINK, "RUN_FIELDDIAG"),
        (20037, "transmit PHY error", K.LINK, "RUN_FIELDDIAG"),
        (20038, "receive PHY error", K.LINK, "RUN_FIELDDIAG"),
    )),
)
# fmt: on
