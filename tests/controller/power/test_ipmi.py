"""Power by ipmitool: a program with an argument list, the password by file."""

from pathlib import Path

import pytest

from controller.power.config import PowerConfig
from controller.power.ipmi import Ipmi
from vocab.errors import Refused, Unreachable

FAKE = Path(__file__).parents[2] / "fakes" / "ipmitool.py"


def power(folder: Path, state: str = "on", program: str = str(FAKE)) -> Ipmi:
    (folder / "power").write_text(state)
    secret = folder / "secret"
    secret.write_text("s3cret\n")
    secret.chmod(0o600)
    config = PowerConfig(
        means="ipmitool", address="bmc", user="corral", password_file=str(secret), nodes=("n1",), program=program
    )
    return Ipmi(config, str(folder).replace("/", "%"))


async def test_power_that_is_on_is_cycled_and_power_that_is_off_comes_on(tmp_path: Path) -> None:
    assert await power(tmp_path).plan() == "cycle"
    ipmi = power(tmp_path, "off")
    means = await ipmi.plan()
    await ipmi.cycle(means)
    assert (means, (tmp_path / "power").read_text()) == ("on", "on")


async def test_the_password_is_in_no_argument(tmp_path: Path) -> None:
    ipmi = power(tmp_path)
    await ipmi.cycle(await ipmi.plan())
    said = (tmp_path / "log").read_text()
    assert "s3cret" not in said
    assert f"-f {tmp_path / 'secret'} chassis power cycle" in said


async def test_what_was_cut_short_is_completed_only_if_it_is_off(tmp_path: Path) -> None:
    await power(tmp_path).complete()
    assert (tmp_path / "log").read_text().count("chassis power on") == 0
    await power(tmp_path, "off").complete()
    assert (tmp_path / "log").read_text().count("chassis power on") == 1


async def test_a_bmc_that_says_no_refuses_and_one_that_is_silent_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not supported in present state"):
        await power(tmp_path, "off").cycle("cycle")
    (tmp_path / "says").write_text("Error: Unable to establish IPMI v2 / RMCP+ session\n")
    with pytest.raises(Unreachable, match="Unable to establish"):
        await power(tmp_path).plan()


async def test_without_the_program_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="install ipmitool"):
        await power(tmp_path, program="/nonexistent/ipmitool").plan()


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"means": "redfish", "address": "http://bmc.example", "nodes": ("n1",)}, "must be https"),
        ({"means": "redfish", "address": "https://bmc.example", "nodes": ("n1", "n2")}, "put {node} into it"),
        ({"means": "redfish", "address": "https://bmc.example", "pool": "p"}, "put {node} into it"),
        ({"means": "redfish", "address": "https://{node}.example"}, "name a pool or nodes"),
        ({"means": "ipmitool", "address": "-H", "nodes": ("n1",)}, "takes a host's name"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_the_start(table: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PowerConfig(user="u", password_file="/etc/corral/p", **table)  # type: ignore[arg-type]
