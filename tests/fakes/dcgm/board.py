"""What a host engine says of eight healthy H100s: one value a field, typed by hand after a real node's figures."""

from collections.abc import Iterator

GPUS = 8
NAME = "NVIDIA H100 80GB HBM3"
DRIVER = "580.105.08"
BUSES = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")

DOUBLES = frozenset({155, 157, 160, 163, 164, *range(1001, 1009)})
TEXTS = frozenset({1, 50, 53, 54, 57})
PROFILING = frozenset(range(1001, 1013))
XID = 230

# fmt: off
VALUES: dict[int, float] = {
    63: 9 << 16, 66: 1, 67: 0, 100: 1980, 101: 2619, 112: 1, 140: 37, 150: 29, 153: 58, 155: 68.92, 156:
    123_456_789, 158: 87, 159: 92, 164: 700.0, 170: 3, 171: 0, 174: 0, 190: 0, 202: 0, 203: 0, 204: 0, 235: 5, 236:
    16, 237: 5, 238: 16, 240: 2_000_000_000, 241: 0, 250: 81_559, 252: 480, 253: 1065, 300: 1, 301: 1, 310: 0, 311:
    0, 312: 0, 313: 0, 345: 0, 346: 0, 389: 0, 393: 0, 394: 0, 395: 0, 396: 0, 449: 0, 1001: 0.97, 1002: 0.915,
    1003: 0.5, 1004: 0.4425, 1005: 0.3, 1006: 0.0, 1007: 0.1, 1008: 0.0, 1009: 1_000_000, 1010: 2_000_000, 1011:
    3_000_000, 1012: 4_000_000, 1424: 0, 1523: 0,
}
# fmt: on
NOT_SUPPORTED = frozenset({191, 390, 391, 392})  # no fan, and rows are remapped instead of pages retired


def uuid(number: int) -> str:
    return f"GPU-0000000{number}-0000-0000-0000-000000000000"


def bus(number: int) -> str:
    return f"00000000:{BUSES[number].upper()}:00.0"


def texts(number: int) -> Iterator[tuple[int, str]]:
    yield from ((1, DRIVER), (50, NAME), (53, f"165000000000{number}"), (54, uuid(number)), (57, bus(number)))
