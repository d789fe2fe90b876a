from pathlib import Path

import pytest

from engine.config import parse
from vocab.errors import ConfigError

GIVEN = ("--replica", "r1", "--model", "smollm2", "--listen", "127.0.0.1:7430", "--beat", "/run/beat")


def test_the_least_that_a_replica_is_told() -> None:
    config = parse(GIVEN)
    assert (config.replica, config.served_name, config.beat, config.gpus) == ("r1", "smollm2", Path("/run/beat"), ())


def test_gpus_are_a_list() -> None:
    assert parse([*GIVEN, "--gpus", "GPU-1,GPU-2"]).gpus == ("GPU-1", "GPU-2")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--threads", "0"), "--threads: must be 1 or more"),
        (("--kv-mib", "much"), "argument --kv-mib: invalid int value"),
        (("--listen", "127.0.0.1"), "--listen: '127.0.0.1' is not host:port"),
        (("--listen", "0.0.0.0:80"), "an engine listens on loopback only"),
        (("--max-model-len", "1"), "--max-model-len"),
        (("--step-tokens", "4"), "--step-tokens: must be at least --max-running"),
        (("--drain-s", "-1"), "--drain-s"),
        (("--colour", "red"), "unrecognized arguments: --colour red"),
        (("--device", "toaster"), "--device: invalid choice: 'toaster'"),
    ],
)
def test_a_wrong_flag_is_named(more: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        parse([*GIVEN, *more])


def test_a_missing_flag_is_named() -> None:
    with pytest.raises(ConfigError, match="--beat"):
        parse(GIVEN[:-2])
