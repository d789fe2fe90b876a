"""One controller a database: a lock on a file beside it, which the kernel drops however the process ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vocab.errors import ConfigError


@contextmanager
def only_controller(state_dir: Path) -> Iterator[None]:
    """Hold the lock. Raises ConfigError if another controller has it or the folder cannot be used."""
    try:
        state_dir.mkdir(parents=True, exist_ok=True, mode=0o750)
        handle = os.open(state_dir / "controller.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    except OSError as error:
        raise ConfigError(f"state_dir: {state_dir} cannot be used: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = os.pread(handle, 20, 0).decode(errors="replace").strip()
            raise ConfigError(
                f"state_dir: {state_dir} is in use by another controller (pid {pid or 'unknown'}); "
                "stop it or choose another state_dir"
            ) from error
        with contextlib.suppress(OSError):  # on a full disk the lock holds all the same; only its number is missing
            os.ftruncate(handle, 0)
            os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(handle)
