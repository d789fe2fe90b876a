from pathlib import Path

import msgspec
import pytest

from vocab.errors import ConfigError
from wire.config import is_loopback, load, split_address


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    listen: str = "127.0.0.1:1"
    period_s: float = 1.0


def test_a_good_file_becomes_the_struct(tmp_path: Path) -> None:
    path = tmp_path / "agent.toml"
    path.write_text('listen = "127.0.0.1:9"\n')
    assert load(path, Wanted) == Wanted(listen="127.0.0.1:9")


@pytest.mark.parametrize(
    ("text", "named"),
    [("interval = 3\n", "interval"), ('period_s = "1 minute"\n', "period_s"), ("listen = [\n", "not valid TOML")],
)
def test_a_wrong_file_is_named_with_its_key(tmp_path: Path, text: str, named: str) -> None:
    path = tmp_path / "agent.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=named) as caught:
        load(path, Wanted)
    assert str(path) in str(caught.value)


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    size: int


class Parts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parts: dict[str, Part]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[parts.a]\nsize = 1\n[parts.b]\nsize = 'two'\n", "Expected `int`, got `str` - at `$.parts.b.size`"),
        ("[parts.a]\nsize = 1\n[parts.b]\nsize=2\nsite=2\n", "Object contains unknown field `site` - at `$.parts.b`"),
        ("[parts.b]\n", "Object missing required field `size` - at `$.parts.b`"),
    ],
)
def test_what_is_wrong_in_one_table_of_many_is_told_with_its_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "controller.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path, Parts)
    assert str(caught.value) == f"{path}: {said}"


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot read"):
        load(tmp_path / "nowhere.toml", Wanted)


@pytest.mark.parametrize("address", ["7400", "host:", "host:port", "host:99999", ""])
def test_an_address_without_host_and_port_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="listen"):
        split_address(address)


def test_addresses_are_taken_apart() -> None:
    assert split_address("[::1]:7400") == ("::1", 7400)
    assert is_loopback("127.0.0.53")
    assert not is_loopback("0.0.0.0")
