"""Answers that follow a JSON schema, a regular expression, a list of choices or a grammar: by xgrammar.

The package is optional; without it, asking for such an answer is an error that says what to install. Compiling
happens in threads of its own, since a schema of a client's making may take long: it is bounded in size and time,
and a thread that does not come back holds up neither the others' answers nor the end of the process.
"""

import asyncio
import importlib.util
import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from engine.api.matcher import TOO_SLOW, Compiled, Shape
from engine.api.requests import BadRequest

if TYPE_CHECKING:
    from engine.loading import Loaded

PACKAGE = "xgrammar"
MAX_BYTES = 64 * 2**10  # of a schema or grammar: those of real tools stay under 20 KiB
MAX_DEPTH = 64  # of brackets: xgrammar never comes back from a schema of a thousand
COMPILE_S = 10.0  # a usual schema takes milliseconds
KNOWN_SLOW = 256  # shapes, the text of each at most MAX_BYTES
CACHE_BYTES = 64 * 2**20  # of compiled grammars that are kept for the next request

_SPACE = 0x20  # the first that is no control character

_ASIDE = threading.Semaphore(2)  # so many compile at once


class Grammars:
    """Compiles what requests ask for, for the tokens of one model."""

    def __init__(self, loaded: "Loaded") -> None:
        self._loaded = loaded
        self._compilers: dict[bool, Any] = {}  # by whether control characters may come
        self._making = threading.Lock()
        self._slow: set[Shape] = set()

    async def compile(self, shape: Shape) -> Compiled:
        """What ``Matcher`` takes. Raises BadRequest if it cannot be had."""
        if shape in self._slow:
            raise too_slow()
        if len(self._slow) > KNOWN_SLOW:
            self._slow.clear()
        if importlib.util.find_spec(PACKAGE) is None:
            raise BadRequest(
                "this server cannot hold an answer to a form: its xgrammar is missing (pip install 'corral[grammar]')",
                param="response_format",
                code="not_supported",
            )
        if len(shape.text.encode()) > MAX_BYTES:
            raise BadRequest(f"the {shape.kind} has more than {MAX_BYTES} bytes", param="response_format")
        if _depth(shape.text) > MAX_DEPTH:
            raise BadRequest(f"the {shape.kind} is nested deeper than {MAX_DEPTH} levels", param="response_format")
        compiler = await _aside(lambda: self._compiler(free=shape.kind != "json"))  # its imports alone take seconds
        try:
            async with asyncio.timeout(COMPILE_S):
                return Compiled(await _aside(lambda: _compiled(compiler, shape)), shape, self._slow)
        except TimeoutError:
            message = f"the {shape.kind} takes more than {COMPILE_S:.0f} s to compile; send a simpler one"
            raise BadRequest(message, param="response_format") from None

    def _compiler(self, *, free: bool) -> Any:
        with self._making:
            if free not in self._compilers:
                self._compilers[free] = _compiler(self._loaded, free=free)
            return self._compilers[free]


def too_slow() -> BadRequest:
    """The answer to a request whose form takes too long to follow."""
    return BadRequest(TOO_SLOW, param="response_format", code="form_too_slow")


def _compiled(compiler: Any, shape: Shape) -> Any:
    try:
        if shape.kind == "json":  # without free white space: a small model would fill the page with it
            return compiler.compile_json_schema(shape.text, any_whitespace=False)
        if shape.kind == "regex":
            return compiler.compile_regex(shape.text)
        return compiler.compile_grammar(_ebnf(shape))
    except (RuntimeError, ValueError, TypeError) as error:  # xgrammar's InvalidJSONError and its like are such
        message = f"the {shape.kind} cannot be followed: {str(error).strip().splitlines()[-1]}"
        raise BadRequest(message, param="response_format") from error


def _depth(text: str) -> int:
    """Brackets that are open at once, those in strings too."""
    steps = (1 if letter in "{[(" else -1 for letter in text if letter in "{[()]}")
    return max(itertools.accumulate(steps), default=0)


def _ebnf(shape: Shape) -> str:
    if shape.kind == "grammar":
        return shape.text
    words = msgspec.json.decode(shape.text, type=list[str])
    return "root ::= " + " | ".join(msgspec.json.encode(word).decode() for word in words)


def _compiler(loaded: "Loaded", *, free: bool) -> Any:
    """A compiler for the model's tokens; unless ``free``, without those that have control characters.

    JSON has none within strings, which xgrammar forgets in strings of a bounded length, and here none between.
    """
    import xgrammar

    words = [word if free or min(word, default=_SPACE) >= _SPACE else b"" for word in loaded.tokenizer.words()]
    known = xgrammar.TokenizerInfo(
        words, xgrammar.VocabType.RAW, vocab_size=loaded.vocab, stop_token_ids=sorted(loaded.eos_ids)
    )
    return xgrammar.GrammarCompiler(known, max_threads=1, cache_limit_bytes=CACHE_BYTES)


async def _aside(work: Callable[[], Any]) -> Any:
    """The outcome of ``work`` in a thread that nothing has to wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def tell(outcome: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(outcome)
        else:
            done.set_exception(error)

    def run() -> None:
        outcome, error = None, None
        try:
            with _ASIDE:
                outcome = work()
        except Exception as caught:  # noqa: BLE001 - it is raised where it is awaited
            error = caught
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, outcome, error)

    threading.Thread(target=run, name="grammar", daemon=True).start()
    return await done
