"""Network ports of the host, from sysfs: InfiniBand and RoCE, and plain Ethernet beside them.

``/sys/class/infiniband/DEVICE/ports/N/{state,phys_state,link_layer,rate,counters,hw_counters}`` (kernel:
Documentation/ABI/stable/sysfs-class-infiniband) and ``/sys/class/net/NAME/{flags,carrier,carrier_*_count}``
(ABI/testing/sysfs-class-net). What cannot be read is left out.

A port that never had a link in this boot is no fault: nobody plugged a cable in, or switched it on. So its state is
left out, unless the configuration names the port. One that is switched off by its administrator has none either.
"""

from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

Figures = dict[str, Any]

COUNTERS = ("link_downed", "symbol_error", "port_rcv_errors", "port_xmit_discards", "port_xmit_wait")
BESIDE = ("link_error_recovery", "local_link_integrity_errors", "excessive_buffer_overrun_errors")
HARDWARE = (  # shown, judged by nobody: how much of it is normal depends on the fabric
    *("out_of_sequence", "packet_seq_err", "rnr_nak_retry_err", "local_ack_timeout_err", "roce_slow_restart"),
    *("rx_icrc_encapsulated", "np_cnp_sent", "rp_cnp_handled"),
)
DISABLED = "Disabled"  # of phys_state: switched off
IS_UP = 0x1  # IFF_UP of ``flags``: an administrator wants this interface
COUNTER_END = 255  # where InfiniBand's 8 bits of link_downed end


class Port(NamedTuple):
    """One port of the machine; ``interfaces``: of an RDMA device, what the rest of the system knows it by."""

    path: Path
    is_rdma: bool
    interfaces: tuple[Path, ...] = ()

    def read(self, *, wanted: bool) -> Figures:
        """Its figures now: files that a card with broken firmware may let hang. ``wanted``: it has to be up."""
        return _rdma(self.path, self.interfaces, wanted=wanted) if self.is_rdma else _ethernet(self.path, wanted=wanted)


def find_ports(sys: Path) -> dict[str, Port]:
    """Every port by name: ``mlx5_0``, of a device with several ``mlx5_0/2``, of plain Ethernet ``eth0``.

    Only folders are listed, which asks no card anything.
    """
    found: dict[str, Port] = {}
    taken: set[str] = set()
    for device in _entries(sys / "class/infiniband"):
        interfaces = tuple(_entries(device / "device/net"))
        taken |= {interface.name for interface in interfaces}
        ports = _entries(device / "ports")
        for port in ports:
            name = device.name if len(ports) == 1 else f"{device.name}/{port.name}"
            found[name] = Port(port, is_rdma=True, interfaces=interfaces)
    for interface in _entries(sys / "class/net"):
        if interface.name not in taken and (interface / "device").exists():  # virtual ones have none
            found[interface.name] = Port(interface, is_rdma=False)
    return found


def absent(found: Collection[str], named: Collection[str]) -> dict[str, Figures]:
    """The ports that have to be up and are not even there."""
    return {name: {"state": "absent"} for name in named if name not in found}


def _rdma(port: Path, interfaces: tuple[Path, ...], *, wanted: bool) -> Figures:
    figures: Figures = {name: _word(port / name) for name in ("phys_state", "link_layer", "rate")}
    figures |= {name: _number(port / "counters" / name) for name in (*COUNTERS, *BESIDE)}
    figures |= {name: _number(port / "hw_counters" / name) for name in HARDWARE}
    state = _word(port / "state")
    if figures["link_layer"] == "Ethernet" and interfaces:  # phys_state is Disabled there for a pulled cable too
        carrier = _ethernet(interfaces[0], wanted=wanted)
        figures["link_downed"] = carrier.get("link_downed", figures["link_downed"])
        judged = wanted or "state" in carrier
    else:
        off = figures["phys_state"] == DISABLED
        judged = wanted or state == "ACTIVE" or not (off or figures["link_downed"] == 0)
    if judged:
        figures["state"] = state
    return {name: value for name, value in figures.items() if value is not None}


def _ethernet(interface: Path, *, wanted: bool) -> Figures:
    """``carrier`` cannot be read of an interface that is switched off."""
    flags, carrier = _text(interface / "flags"), _number(interface / "carrier")
    fallen, risen = _number(interface / "carrier_down_count"), _number(interface / "carrier_up_count")
    figures: Figures = {"link_downed": None if fallen == COUNTER_END else fallen, "link_layer": "Ethernet"}
    is_on = bool(flags and int(flags, 16) & IS_UP)
    if wanted or (is_on and (carrier == 1 or risen)):
        figures["state"] = "up" if carrier == 1 else "down"
    return {name: value for name, value in figures.items() if value is not None}


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str | None:
    try:
        return path.read_text().strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _word(path: Path) -> str | None:
    """``ACTIVE`` of ``4: ACTIVE``."""
    text = _text(path)
    return None if text is None else text.rpartition(": ")[2]


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text is not None and text.isdecimal() else None
