"""Kernel logs of hosts by the system's own ssh: argument lists only, nothing is written there, a few at a time.

The user's ssh configuration counts (names, keys, jump hosts). Nobody is asked for a password.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from vocab.errors import InputError

AT_ONCE = 16
CONNECT_S = 10
HOST_S = 600.0  # a month of a chatty journal over a slow link
_HOST = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.:@\[\]-]*$")  # never an option
# All boots: ``--dmesg`` would mean this boot alone.
JOURNAL = ("journalctl", "_TRANSPORT=kernel", "--output=short-iso-precise", "--no-pager", "--quiet")


def hosts(given: Sequence[str]) -> list[str]:
    """The hosts in these words: names with commas between, or ``@FILE`` with one a line. Raises InputError."""
    found: dict[str, None] = {}
    for word in given:
        if word.startswith("@"):
            try:
                text = Path(word[1:]).read_text(encoding="utf-8")
            except OSError as error:
                raise InputError(f"--ssh: {word[1:]} cannot be read: {error.strerror}") from error
            names = [line.partition("#")[0].strip() for line in text.splitlines()]
        else:
            names = word.split(",")
        for name in filter(None, names):
            if _HOST.match(name) is None:
                raise InputError(f"--ssh: {name!r} is no name of a host")
            found[name] = None
    return list(found)


def command(ssh: str, host: str, days: float) -> list[str]:
    """What asks a host for its kernel log. Words without spaces, for ssh joins them for the shell over there."""
    options = ["-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_S}", "-n", "-T"]
    return [ssh, *options, "--", host, *JOURNAL, f"--since=-{max(1, round(days * 24))}h"]


async def fetch(
    names: Sequence[str], folder: Path, days: float, tell: Callable[[str], None], *, ssh: str = "ssh"
) -> list[str]:
    """A file a host in ``folder``, named after it; what could not be had, and why."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(host: str) -> str | None:
        async with gate:
            why = await _one(command(ssh, host, days), folder / f"{host}.log")
        tell(host)
        return None if why is None else f"{host}: {why}"

    return [why for why in await asyncio.gather(*map(one, names)) if why is not None]


async def _one(words: Sequence[str], path: Path) -> str | None:
    """Run it, with its output into a file; why nothing came."""
    with path.open("wb") as out:
        try:
            child = await asyncio.create_subprocess_exec(*words, stdout=out, stderr=asyncio.subprocess.PIPE)
        except OSError as error:
            raise InputError(f"--ssh: {words[0]} cannot be started: {error.strerror}; install OpenSSH") from error
        try:
            async with asyncio.timeout(HOST_S):
                _, said = await child.communicate()
        except TimeoutError:
            child.kill()
            await child.wait()
            return f"it had not sent its log within {HOST_S:g} s"
        except asyncio.CancelledError:
            child.kill()
            raise
    return None if child.returncode == 0 or await asyncio.to_thread(_has_any, path) else _said(child, said)


def _has_any(path: Path) -> bool:
    """Whether anything came; a file of nothing is taken away."""
    if path.stat().st_size:
        return True
    path.unlink()
    return False


def _said(child: asyncio.subprocess.Process, said: bytes) -> str:
    words_of = said.decode(errors="replace").strip().splitlines()
    return words_of[-1][:200] if words_of else f"ssh ended with {child.returncode}"
