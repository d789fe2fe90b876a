"""A program of a manager, run with an argument list, a time limit and no shell."""

import asyncio
import os
from collections.abc import Mapping, Sequence

import msgspec

from vocab.errors import Unreachable

MOST_TOLD = 300  # characters of what it said in an error


class Answer(msgspec.Struct, frozen=True):
    """How it ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> str:
        """Its last words, on one line."""
        return " ".join((self.err or self.out).split())[-MOST_TOLD:]


async def run(
    words: Sequence[str], *, answer_s: float, env: Mapping[str, str] | None = None, given: bytes = b""
) -> Answer:
    """Run it to its end; killed after ``answer_s``. Raises Unreachable if it cannot be run, or does not end."""
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE if given else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
    except OSError as error:
        raise Unreachable(f"{words[0]} cannot be run: {error.strerror}; install it, or correct its path") from error
    try:
        async with asyncio.timeout(answer_s):
            out, err = await process.communicate(given or None)
    except TimeoutError:
        raise Unreachable(f"{words[0]} has not ended within {answer_s:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Answer(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))
