"""Ends of processes, told by the kernel at once: a descriptor of each process becomes readable when it has ended.

So nobody has to look again and again whether it still lives. Where the kernel gives no descriptor (too many are open,
or it is older than Linux 5.3) a process is not watched, and whoever wants to know looks at it.
"""

import asyncio
import os
from collections.abc import Callable, Collection

from agent.replicas.identity import Identity, alive


class Ends:
    """The processes that are waited for, by replica. ``told`` is called when one has ended, once for each."""

    def __init__(self, boot: str, told: Callable[[str], None]) -> None:
        self._boot = boot
        self._told = told
        self._watched: dict[str, tuple[Identity, int]] = {}

    def watch(self, replica: str, process: Identity) -> bool:
        """Whether the end of this process will be told; the first call begins to wait for it."""
        known = self._watched.get(replica)
        if known is not None and known[0] == process:
            return True
        self.forget(replica)
        try:
            handle = os.pidfd_open(process.pid)
        except OSError:
            return False
        if not alive(process, self._boot):  # the descriptor may be of whoever has this pid now
            os.close(handle)
            return False
        self._watched[replica] = process, handle
        asyncio.get_running_loop().add_reader(handle, self._ended, replica)
        return True

    def keep(self, replicas: Collection[str]) -> None:
        """Wait no longer for any but these."""
        for replica in [known for known in self._watched if known not in replicas]:
            self.forget(replica)

    def forget(self, replica: str) -> None:
        """Wait for it no longer."""
        _, handle = self._watched.pop(replica, (None, None))
        if handle is not None:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)

    def close(self) -> None:
        """Wait for none."""
        self.keep(())

    def _ended(self, replica: str) -> None:
        self.forget(replica)
        self._told(replica)
