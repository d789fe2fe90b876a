"""Which way a real node's kernel log is read: /dev/kmsg, or the journal where that may not be opened."""

import os
import shutil
from pathlib import Path

from agent.config import AgentConfig
from agent.sources.journal import JournalSource
from agent.sources.kmsg import KmsgSource, RealKmsg
from agent.sources.source import Source
from vocab.clock import Clock


def kernel_log(config: AgentConfig, clock: Clock, boot_id: str, after_seq: int | None) -> Source:
    """kmsg if it can be had: it is quicker, and has numbers. Records are read on after ``after_seq`` of this boot.

    Without journalctl it is kmsg as well, which then says what is missing.
    """
    wanted = config.kernel_log
    if wanted == "auto":
        wanted = "kmsg" if can_open(config.kmsg) or shutil.which("journalctl") is None else "journal"
    if wanted == "journal":
        return JournalSource(config.node, config.state_dir / "journal.place", clock, boot_id)
    return KmsgSource(config.node, RealKmsg(config.kmsg), clock, boot_id, after_seq=after_seq)


def can_open(path: Path) -> bool:
    """Whether we may read it; the kernel asks for the right when it is opened, not at each read."""
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True
