"""A /proc that a test makes up, file by file, in the forms of proc(5)."""

import os
from pathlib import Path

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"


class Tree:
    """Processes by pid. ``net`` names the network that a process is in."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "self" / "net").mkdir(parents=True)
        for name in ("tcp", "tcp6"):
            (root / "self" / "net" / name).write_text(HEAD + "\n")
        self.networks = {}

    def add(self, pid, *command, parent=1, session=None, uid=1000, cgroup="0::/", net="ours", environ=(), start=100):
        folder = self.root / str(pid)
        (folder / "fd").mkdir(parents=True)
        (folder / "net").mkdir()
        fields = ["S", str(parent), str(pid), str(session or pid), *["0"] * 15, str(start * os.sysconf("SC_CLK_TCK"))]
        (folder / "stat").write_text(f"{pid} (a (name) {pid}) {' '.join(fields)} 0 0")
        (folder / "status").write_text(f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (folder / "cgroup").write_text(cgroup + "\n")
        (folder / "cmdline").write_text("".join(f"{word}\0" for word in command))
        (folder / "environ").write_text("".join(f"{word}\0" for word in environ))
        self.networks[pid] = net
        (folder / "net" / "tcp").write_text(HEAD + "\n")
        return pid

    def listen(self, pid, port, host="00000000", state="0A", uid=1000):
        """A socket of this process, in the state LISTEN unless told otherwise."""
        folder = self.root / str(pid)
        inode = 5000 + pid * 10 + len(list((folder / "fd").iterdir()))
        table = folder / "net" / ("tcp" if len(host) == 8 else "tcp6")
        queues = "00000000:00000000 00:00000000 00000000"
        row = f"   0: {host}:{port:04X} 00000000:0000 {state} {queues} {uid} 0 {inode} 1 0"
        tables = [table, self.root / "self" / "net" / table.name] if self.networks[pid] == "ours" else [table]
        for each in tables:
            each.write_text((each.read_text() if each.exists() else HEAD + "\n") + row + "\n")
        (folder / "fd" / str(inode)).symlink_to(f"socket:[{inode}]")

    def end(self, pid):
        (self.root / str(pid) / "stat").unlink()
