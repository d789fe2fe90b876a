"""The command itself: recordings in, decisions out, counts on standard error, an exit code."""

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from controller.core.fleet.order import in_order
from controller.core.fleet.settings import Settings
from controller.core.policy import policyfile
from corral.jsonl import one_line
from corral.replay.pauses import find
from corral.replay.play import Play
from corral.replay.recording import Recording
from corral.replay.told import as_json as told_as_json
from corral.replay.told import as_text, renamed
from corral.terminal import Out
from vocab.errors import ConfigError, InputError
from vocab.lines import AnyLine

OK, BAD_INPUT = 0, 2


def replay(
    paths: Sequence[Path],
    policy: Path | None,
    *,
    metrics: bool = False,
    out: Out,
    err: TextIO,
    as_json: bool = False,
) -> int:
    """Play recordings and print each decision. ``metrics`` prints the controller's metrics at the end instead.

    ``policy`` is a TOML file with differences from the built-in policy (``core.policy.policyfile``). Returns 0,
    or 2 for bad input, with one line on ``err`` that names file and line. The same input gives the same bytes.
    """
    paths = [Path(path) for path in paths]
    recording = Recording(paths)
    try:
        play = Play(_settings(policy), find(paths))
        teller = _Teller(play, out, silent=metrics, as_json=as_json)
        for observation in recording:
            play.see(observation)
            teller.tell(before=observation.at)
        final = play.end()
        teller.tell()
        teller.write(final)
    except (InputError, ConfigError) as error:
        print(f"corral replay: {error}", file=err)
        return BAD_INPUT
    if metrics:
        out.write(_metrics(play))
    for kind, count in sorted(recording.skipped.items()):
        print(f"{count} lines skipped: nobody knows the obs {kind!r}", file=err)
    if play.stray:
        print(f"{play.stray} lines skipped: they are of a node and name none", file=err)
    return OK


def _settings(policy: Path | None) -> Settings:
    if policy is None:
        return Settings()
    try:
        raw = policy.read_bytes()
    except OSError as error:
        raise ConfigError(f"{policy}: cannot be read: {error.strerror}") from error
    return policyfile.read(raw, str(policy))


class _Teller:
    """Prints the lines of each moment once it is over, by kind. Holds no line longer than that."""

    def __init__(self, play: Play, out: Out, *, silent: bool, as_json: bool) -> None:
        self._play = play
        self._out = out
        self._silent = silent
        self._json = as_json
        self._told = 0

    def tell(self, before: float = float("inf")) -> None:
        """Write what was decided before this moment."""
        lines = self._play.lines
        while self._told < len(lines) and lines[self._told].at < before:
            at, end = lines[self._told].at, self._told
            while end < len(lines) and lines[end].at == at:
                end += 1
            self.write(in_order(lines[self._told : end]))
            self._told = end

    def write(self, lines: Sequence[AnyLine]) -> None:
        """Write these lines as they come."""
        if self._silent:
            return
        names = self._play.cast.as_recorded()
        for line in lines if not names else [renamed(line, names) for line in lines]:
            self._out.write(one_line(told_as_json(line)) if self._json else as_text(line) + "\n")


def _metrics(play: Play) -> str:
    from controller.telling.export import Export, Snapshot  # prometheus-client is needed here alone
    from corral.replay import xids

    export = Export("replay")
    export.snapshot = lambda: Snapshot(view=play.view(), report_ages_s={}, readers=0, seq=len(play.lines))
    export.committed(0.0, play.lines)
    body, _ = export.render()
    gpus = [gpu.uuid for node in play.view().nodes for gpu in node.gpus]
    return body.decode() + xids.exposition(play.lines, gpus)
