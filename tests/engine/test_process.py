import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.tiny import config, write_model
from tests.ports import free_ports
from vocab.beat import Beat, unpack

ROOT = Path(__file__).parent.parent.parent
PATIENCE_S = 60.0  # torch alone takes ten seconds to import when all cores are busy


class Program:
    """``python -m engine`` as the agent starts it."""

    def __init__(self, folder: Path, model: str, *flags: str) -> None:
        [self.port] = free_ports(1)
        self.beat_file = folder / "beat"
        self.log = folder / "log"
        self._out = self.log.open("w")
        command = [sys.executable, "-m", "engine", "--replica", "r1", "--served-name", "tiny", "--model", model,
                   "--listen", f"127.0.0.1:{self.port}", "--beat", str(self.beat_file), *flags]  # fmt: skip
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=self._out, stderr=self._out)

    def open(self, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", data, timeout=PATIENCE_S)

    def until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            try:
                self.open("/ready")
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
            else:
                return
        pytest.fail(f"not ready in time: {self.log.read_text()}")

    def beat(self) -> Beat | None:
        return unpack(self.beat_file.read_bytes())

    def until_draining(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while (beat := self.beat()) is None or not beat.draining:
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def end(self) -> tuple[int, str]:
        code = self.process.wait(PATIENCE_S)
        self._out.close()
        return code, self.log.read_text()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._out.close()


@pytest.fixture
def long_model(tmp_path: Path) -> str:
    """A model that can go on for a long time."""
    return str(write_model(tmp_path / "long", config(max_position_embeddings=20_000)))


@pytest.fixture
def started(tmp_path: Path, long_model: str) -> Iterator[Program]:
    program = Program(tmp_path, long_model)
    try:
        program.until_ready()
        yield program
    finally:
        program.kill()


def stream(program: Program, tokens: int) -> Any:
    wish = {"model": "tiny", "prompt": "a", "stream": True, "ignore_eos": True, "max_tokens": tokens}
    answer = program.open("/v1/completions", wish)
    assert answer.readline().startswith(b"data: ")
    return answer


def finish(answer: Any) -> tuple[str, bool]:
    """(reason of the end, whether [DONE] came)."""
    lines = [line.removeprefix(b"data: ").strip() for line in answer if line.startswith(b"data: ")]
    return json.loads(lines[-2])["choices"][0]["finish_reason"], lines[-1] == b"[DONE]"


def test_sigterm_lets_a_stream_end_and_exits_with_0(started: Program) -> None:
    beat = started.beat()
    assert beat is not None
    assert (beat.pid, beat.ready, beat.admitting) == (started.process.pid, True, True)
    answer = stream(started, 300)
    started.process.send_signal(signal.SIGTERM)
    assert finish(answer) == ("length", True)
    code, log = started.end()
    assert (code, "Traceback" in log) == (0, False)
    beat = started.beat()
    assert beat is not None
    assert (beat.admitting, beat.draining, beat.open_requests, beat.tokens) == (False, True, 0, 300)


def test_a_second_sigterm_cuts_off_and_exits_with_3(started: Program) -> None:
    answer = stream(started, 19_000)
    started.process.send_signal(signal.SIGTERM)
    started.until_draining()  # two signals at once are one
    started.process.send_signal(signal.SIGTERM)
    assert finish(answer) == ("abort", True)
    code, log = started.end()
    assert (code, "Traceback" in log) == (3, False)


def test_sigterm_while_loading_ends_at_once_with_0(tmp_path: Path, long_model: str) -> None:
    program = Program(tmp_path, long_model)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while "listening" not in program.log.read_text():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        program.process.send_signal(signal.SIGTERM)
        assert program.end()[0] == 0
    finally:
        program.kill()


@pytest.mark.parametrize(
    ("model", "flags", "words"),
    [
        ("/absent/model.gguf", (), "model /absent/model.gguf: there is no such file or folder"),
        ("{folder}", ("--threads", "none"), "argument --threads: invalid int value"),
        ("{folder}", ("--token-file", "/absent/token"), "/absent/token: cannot read the token"),
        ("{folder}", ("--beat", "/proc/beat"), "--beat /proc/beat: cannot be written"),
        ("{folder}", ("--listen", "127.0.0.1:1", "--listen", "127.0.0.1:{taken}"), "cannot be used"),
    ],
)
def test_what_keeps_it_from_starting_is_one_line_and_exit_code_2(
    model: str, flags: tuple[str, ...], words: str, tmp_path: Path
) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        program = Program(tmp_path, model.format(folder=tmp_path), *(flag.format(taken=port) for flag in flags))
        code, log = program.end()
    assert code == 2
    assert log.startswith("corral-engine: ")
    assert words in log
    assert log.count("\n") == 1


def test_a_damaged_model_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    code, log = Program(tmp_path, str(tmp_path / "m.gguf")).end()
    assert code == 2
    assert "corral-engine: " in log
    assert "the file is damaged or cut short" in log
    assert "Traceback" not in log
