"""Recordings made by hand: a few words for the lines that most of them need, and what replay makes of them."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from corral.replay import replay

Json = dict[str, Any]
DEEDS = ("hold", "action")


def node(at: float = 0, name: str = "n1", gpus: int = 4, boot: str = "b1", **more: Any) -> Json:
    """An inventory: GPUs GPU-NAME-0 and so on at 0000:10:00 and up."""
    listed = more.pop("listed", range(gpus))
    found = [
        {"uuid": f"GPU-{name}-{i}", "index": i, "pci": f"0000:{0x10 + i:02x}:00", "serial": f"{name}/{i}",
         "name": "NVIDIA H100 80GB HBM3"} for i in listed
    ]  # fmt: skip
    return {"obs": "node", "at": at, "node": name, "boot_id": boot, "driver": "570.86", "gpus": found} | more


def xid(at: float, number: int, gpu: int = 0, name: str = "n1", tail: str | None = None, **more: Any) -> Json:
    """A line of the kernel log about a GPU."""
    tails = {
        13: "pid=7, name=x, Graphics SM Warp Exception on (GPC 7, TPC 6, SM 0): Illegal Instruction Parameter",
        79: "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        94: "pid=7, name=x, Contained: CE User Channel (0x9). RST: No, D-RST: No",
        95: "pid=7, name=x, Uncontained: LTC TAG (0x1,0x0). RST: Yes, D-RST: No",
        48: "pid=7, name=x, An uncorrectable double bit error (DBE) has been detected on GPU in the framebuffer.",
    }
    text = f"NVRM: Xid (PCI:0000:{0x10 + gpu:02x}:00): {number}, {tails[number] if tail is None else tail}"
    return {"obs": "kernel", "at": at, "node": name, "source": "kmsg", "line": text} | more


def sample(at: float, gpu: int = 0, name: str = "n1", **readings: Any) -> Json:
    """Readings of a GPU; ``error`` and the like by their own names."""
    apart = {key: readings.pop(key) for key in ("error", "errors", "links", "processes") if key in readings}
    found = {"readings": readings} if readings else {}
    return {"obs": "gpu", "at": at, "node": name, "gpu": f"GPU-{name}-{gpu}"} | found | apart


def deployment(at: float = 0, name: str = "chat", replicas: int = 1, **more: Any) -> Json:
    """A deployment that Corral keeps running."""
    plain = {"obs": "deployment", "at": at, "deployment": name, "replicas": replicas, "gpus_per_replica": 1}
    return plain | {"min_ready": 1} | more


def replica(at: float, name: str = "R1", gpus: Iterable[int] = (0,), on: str = "n1", **more: Any) -> Json:
    """A replica of chat that is ready."""
    members = [{"node": on, "gpu": f"GPU-{on}-{gpu}", "rank": rank} for rank, gpu in enumerate(gpus)]
    plain = {"obs": "replica", "at": at, "node": on, "replica": name, "deployment": "chat", "members": members}
    return plain | {"phase": "ready", "ready": True, "running": 0, "waiting": 0, "step": 1} | more


def of(kind: str, at: float, on: str | None = "n1", **more: Any) -> Json:
    """A line of any other kind."""
    return {"obs": kind, "at": at} | ({"node": on} if on else {}) | more


def end(at: float) -> Json:
    """Time goes on to here."""
    return {"obs": "end", "at": at}


def write(path: Path, *lines: Json | str) -> Path:
    """A recording."""
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def told(path: Path, *lines: Json | str, **more: Any) -> tuple[int, str, str]:
    """Exit code, output and errors of a replay of these lines."""
    out, err = io.StringIO(), io.StringIO()
    code = replay([write(path / "r.jsonl", *lines)], more.pop("policy", None), as_json=True, out=out, err=err, **more)
    return code, out.getvalue(), err.getvalue()


def lines_of(path: Path, *lines: Json | str, **more: Any) -> list[Json]:
    """The decision lines that a recording leads to."""
    code, out, err = told(path, *lines, **more)
    assert code == 0, err
    return [json.loads(line) for line in out.splitlines()]


def kinds(lines: Iterable[Json], *names: str) -> list[Json]:
    """The lines of these kinds."""
    return [line for line in lines if line["kind"] in names]


def actions(lines: Iterable[Json], *names: str) -> list[tuple[float, str, str]]:
    """When, what and how far, of actions (of these kinds)."""
    found = kinds(lines, "action")
    return [(line["at"], line["of"], line["state"]) for line in found if not names or line["of"] in names]


def codes(lines: Iterable[Json], kind: str = "event") -> list[str]:
    """The codes of events or conditions."""
    return [line["event"]["code"] if kind == "event" else line["code"] for line in kinds(lines, kind)]


def words(lines: Iterable[Json], **subject: str) -> list[tuple[float, str]]:
    """The states that a subject went through, and when."""
    return [(line["at"], line["to"]) for line in kinds(lines, "state") if line["subject"] == subject]


def final(lines: Iterable[Json], **subject: str) -> Json:
    """Where a subject stands at the end; the fleet without one."""
    return next(line for line in kinds(lines, "final") if line["subject"] == subject)
