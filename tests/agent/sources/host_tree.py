"""Trees of files as /proc and /sys are, for the sources of the host."""

from pathlib import Path


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def infiniband(sys: Path, name: str, port: int = 1, *, state: str = "4: ACTIVE", phys: str = "5: LinkUp",
               layer: str = "InfiniBand", **counters: int) -> None:  # fmt: skip
    """One port of an RDMA device."""
    where = f"class/infiniband/{name}/ports/{port}"
    words = {"state": state, "phys_state": phys, "link_layer": layer, "rate": "400 Gb/sec (4X NDR)"}
    write(sys, {f"{where}/{key}": f"{value}\n" for key, value in words.items()})
    figures = {"link_downed": 0, "symbol_error": 0, "port_rcv_errors": 0, **counters}
    write(sys, {f"{where}/counters/{key}": f"{value}\n" for key, value in figures.items()})


def ethernet(sys: Path, name: str, *, of: str | None = None, flags: str = "0x1003", carrier: int | None = 1,
             ups: int = 1, downs: int = 0, physical: bool = True) -> None:  # fmt: skip
    """One interface, of an RDMA device if ``of`` names one."""
    files = {"flags": flags, "carrier_up_count": str(ups), "carrier_down_count": str(downs)}
    if carrier is not None:
        files["carrier"] = str(carrier)
    if physical:
        files["device/vendor"] = "0x15b3"
    for where in (f"class/net/{name}", *([f"class/infiniband/{of}/device/net/{name}"] if of else [])):
        write(sys, {f"{where}/{key}": f"{value}\n" for key, value in files.items()})


def process(proc: Path, pid: int, name: str, state: str = "S", *, start: int = 500, switches: int | None = 10,
            wchan: str | None = None, flags: int = 0x400100, parent: int = 1) -> None:  # fmt: skip
    """One process; ``start`` in clock ticks since boot."""
    fields = [state, str(parent), "1", "1", "0", "-1", str(flags), *["0"] * 12, str(start), "0", "0"]
    write(proc, {f"{pid}/stat": f"{pid} ({name}) {' '.join(fields)}\n"})
    if switches is not None:
        counts = f"voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t1\n"
        write(proc, {f"{pid}/status": f"Name:\t{name}\n{counts}"})
    if wchan is not None:
        write(proc, {f"{pid}/wchan": wchan})


def machine(proc: Path) -> None:
    write(
        proc,
        {"meminfo": "MemTotal:       2048 kB\nMemFree:  100 kB\nMemAvailable:   1024 kB\n", "uptime": "350.5 9.0\n"},
    )
