"""The policy of a live controller: its file's differences, and the pools and domains of its configuration."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from controller.config import Config, PoolConfig
from controller.core.fleet import weighing
from controller.core.fleet.pinned import not_adopted, pin
from controller.core.fleet.settings import Settings
from controller.core.policy.difference import differences
from controller.deciding import rulebook
from controller.deciding.mind import real_core
from controller.store import policies
from tests.controller.house import batch, event, house
from tests.controller.node import Node
from vocab.catalogue import codes, nvlink4, recovery
from vocab.errors import ConfigError
from vocab.events import Recovery, Severity
from vocab.states import Level

DOCS = Path(__file__).parents[3] / "docs" / "policy.md"
FILE = """
version = "2026-11"
[limits]
cordons = 3
[rules."xid:48"]
recovery = "reboot_node"
[pools.test]
level = "fence"
rules."xid:95".shadow = true
"""


def config(folder: Path, **more: Any) -> Config:
    return Config(state_dir=str(folder), **more)


@pytest.fixture
def policy(tmp_path: Path) -> str:
    path = tmp_path / "policy.toml"
    path.write_text(FILE)
    return str(path)


def first(folder: Path, **more: Any) -> Settings:
    """What a first start puts in force."""
    configured = config(folder, **more)
    return rulebook.in_force(configured, rulebook.first(configured))


def test_without_a_file_the_policy_is_the_built_in_one(tmp_path: Path) -> None:
    assert first(tmp_path) == Settings()


@pytest.mark.parametrize(
    ("configured", "in_force"), [(None, Level.FENCE), (Level.REPAIR, Level.FENCE), (Level.OBSERVE, Level.OBSERVE)]
)
def test_the_lower_level_of_a_pool_counts(tmp_path: Path, policy: str, configured: Level, in_force: Level) -> None:
    pools = {"test": PoolConfig(nodes=("n1",), level=configured), "main": PoolConfig(nodes=("n2",))}
    found = first(tmp_path, policy_file=policy, pools=pools)
    assert (found.policy, found.limits.cordons) == ("2026-11", 3)
    assert {name: pool.level for name, pool in found.pools.items()} == {"test": in_force}
    assert found.rule("xid:95", "test", "").shadow


def test_a_pool_of_the_file_that_has_no_nodes_is_named(tmp_path: Path, policy: str) -> None:
    with pytest.raises(ConfigError, match=r"policy.toml: pools.test: the configuration has no \[pools.test\]"):
        first(tmp_path, policy_file=policy)


def test_the_sample_of_the_docs_is_adopted_where_its_pool_is_made(tmp_path: Path) -> None:
    sample = DOCS.read_text().split("```toml\n")[1].partition("```")[0]
    configured = config(tmp_path, pools={"test": PoolConfig(nodes=("n1",))})
    drawn = rulebook.draft(sample, configured, actor="ada", reason="the docs")
    found = rulebook.in_force(configured, drawn)
    assert (found.policy, found.level, found.limits.cordons) == ("2026-11", Level.CORDON, 3)
    assert found.rule("xid:48", "test", "NVIDIA H100 80GB HBM3").level is Level.FENCE


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"policy_file: cannot read /none/policy.toml"):
        first(tmp_path, policy_file="/none/policy.toml")


async def test_a_first_start_with_a_wrong_policy_ends_at_once_and_a_later_one_goes_on_with_what_was_adopted(
    tmp_path: Path,
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('level = "most"')
    with pytest.raises(ConfigError, match=r"policy.toml: level: Invalid enum value 'most'"):
        async with house(tmp_path / "state", make_core=real_core, policy_file=str(path)):
            pass
    path.write_text('version = "good"')
    async with house(tmp_path / "state", make_core=real_core, policy_file=str(path)):
        pass
    path.write_text('level = "most"')
    async with house(tmp_path / "state", make_core=real_core, policy_file=str(path)) as home:
        found = await home.get("policy")
    assert (found["version"], "is not what was adopted" in found["unheeded"]) == ("good", True)


async def test_the_interface_shows_what_is_in_force(tmp_path: Path, policy: str) -> None:
    pools = {"test": PoolConfig(nodes=("n1",))}
    more = {"policy_file": policy, "pools": pools, "domains": {"rack-4": ("n1", "n9")}}
    async with house(tmp_path / "state", make_core=real_core, **more) as home:
        await home.post("agent/batch", batch(facts=Node(home).facts))
        found = await home.get("policy")
        (told,) = await home.get("nodes")
    assert (found["version"], found["level"], found["paused"], found["demoted"]) == ("2026-11", "repair", False, [])
    assert found["nodes"] == {"n1": "fence"} == {told["node"]: told["level"]}, "the node itself asks for repair"
    assert found["domains"] == {"rack-4": ["n1", "n9"]}
    assert found["pools"]["test"]["level"] == "fence"
    assert found["pools"]["test"]["differences"]["xid:95"]["shadow"] is True
    rules = {rule["code"]: rule for rule in found["rules"]}
    assert {code for code, rule in rules.items() if rule["differs"]} == set(found["differences"]) == {"xid:48"}
    assert (rules["xid:48"]["recovery"], rules["xid:48"]["holds"]) == (Recovery.REBOOT_NODE, True)
    assert (rules["xid:13"]["severity"], rules["xid:13"]["holds"]) == (Severity.WARNING, False)


async def test_pools_and_domains_reach_the_core_after_a_restart_too(tmp_path: Path) -> None:
    division = {"pools": {"test": PoolConfig(nodes=("n1",), level=Level.CORDON)}, "domains": {"rack-4": ("n1",)}}
    for _ in range(2):
        async with house(tmp_path, make_core=real_core, **division) as home:
            await home.post("agent/batch", batch(facts=Node(home).facts))
            assert [node["level"] for node in await home.get("nodes")] == ["cordon"]
            fleet = home.inside.mind.core._fleet
            assert (fleet.pools, fleet.domains) == ({"test": ("n1",)}, {"rack-4": ("n1",)})


def test_a_rule_that_an_upgrade_changes_or_brings_is_in_shadow_until_it_is_adopted(tmp_path: Path) -> None:
    configured = config(tmp_path)
    adopted = rulebook.first(configured)
    changed = replace(codes.ROWS["xid:31"], severity=Severity.ERROR, recovery=Recovery.RESET_GPU)
    new = replace(codes.ROWS["xid:48"], code="xid:999")
    upgraded = {**codes.ROWS, "xid:31": changed, "xid:999": new}
    settings = rulebook.in_force(configured, adopted, upgraded)
    assert settings.shadowed == {"xid:999": "it is new since the policy was adopted"}
    assert settings.unadopted["xid:31"] == (
        "it acts as it was adopted, and has changed since: severity warning is error, recovery restart_app is reset_gpu"
    )
    assert settings.row(changed) == codes.ROWS["xid:31"]
    [said] = [each for each in differences(settings, Settings(), upgraded) if each.key == 'rules."xid:31"']
    assert (said.before, said.after) == ("warning, restart_app", "error, reset_gpu")


def test_what_is_stored_of_an_adoption_does_not_hang_on_the_catalogue_of_who_stored_it(tmp_path: Path) -> None:
    stored = policies.as_row(rulebook.first(config(tmp_path)))["settings"]
    assert not {"kept", "shadowed"} & json.loads(stored).keys()


def test_a_table_that_weighs_events_one_by_one_is_part_of_the_rule(tmp_path: Path) -> None:
    now = pin(codes.ROWS)
    then = {**now, "xid:149": replace(now["xid:149"], table="another")}
    said = "it has changed since the policy was adopted: the table that weighs its events"
    assert not_adopted(then, now) == {"xid:149": said}


def test_a_rule_whose_table_an_upgrade_changed_weighs_each_event_as_it_was_adopted(tmp_path: Path) -> None:
    adopted, today = rulebook.first(config(tmp_path)), pin(codes.ROWS)
    bits = {**nvlink4.BITS, 0: (((0, 23, 30), nvlink4.PARITY), ((4,), nvlink4.HARMLESS))}
    tables = {"xid:74": bits, "xid:154": {**recovery.ACTIONS, 1: recovery.ACTIONS[0]}, "xid:150": ()}
    older = {
        code: replace(today[code], table="another", weighs=msgspec.json.encode(table).decode())
        for code, table in tables.items()
    }
    settings = rulebook.in_force(config(tmp_path), replace(adopted, pinned={**today, **older}))
    assert settings.shadowed == {}
    assert set(settings.unadopted) == set(tables)

    def weighed(code: str, severity: Severity, advised: Recovery, **fields: Any) -> tuple[Severity, Recovery]:
        came = replace(event(code=code, severity=severity, fields=fields), recovery=advised)
        then = settings.weighed(came, None, "")
        assert settings.kept[code].forward(then) == came or then == came
        return then.severity, then.recovery

    reset, support = Recovery.RESET_GPU, Recovery.CONTACT_SUPPORT
    assert weighed("xid:154", Severity.CRITICAL, reset, to=1) == (Severity.INFO, Recovery.NONE)
    assert weighed("xid:154", Severity.CRITICAL, reset, to=6) == (Severity.CRITICAL, reset)
    assert weighed("xid:154", Severity.INFO, Recovery.NONE, to=1) == (Severity.INFO, Recovery.NONE), "an older agent"
    assert weighed("xid:74", Severity.INFO, Recovery.NONE, registers=["0x1"], times={"hw ecc/parity": 3}) == (
        Severity.ERROR,
        support,
    )
    assert weighed("xid:150", Severity.CRITICAL, reset, unit="MSE_WATCHDOG", fatal=True, intrinfo="0x0",
                   error_status="0x0") == (Severity.ERROR, Recovery.INVESTIGATE)  # fmt: skip


@pytest.mark.parametrize(
    "fields", [{}, {"registers": 5, "times": 3, "to": [1]}, {"registers": [None], "times": {"a": "b"}}]
)
def test_fields_that_nobody_can_read_are_weighed_by_the_row(tmp_path: Path, fields: dict[str, Any]) -> None:
    for code, weigher in weighing.WEIGHERS.items():
        found = weighing.weigh(event(code=code, fields=fields), weighing.text(code))
        assert found is None or isinstance(found[0], Severity)
        assert weighing.is_readable(code, weighing.text(code))
        assert weigher.table is not None


def test_a_table_that_was_kept_in_another_form_or_not_at_all_leaves_its_rule_in_shadow(tmp_path: Path) -> None:
    adopted, today = rulebook.first(config(tmp_path)), pin(codes.ROWS)
    older = {
        "xid:74": replace(today["xid:74"], table="another", weighs='{"0":["of", "another form"]}'),
        "xid:154": replace(today["xid:154"], table="another", weighs=""),
    }
    settings = rulebook.in_force(config(tmp_path), replace(adopted, pinned={**today, **older}))
    assert set(settings.shadowed) == set(older)


def test_an_adoption_without_tables_is_as_one_with_them(tmp_path: Path) -> None:
    adopted = rulebook.first(config(tmp_path))
    bare = {code: replace(rule, weighs="") for code, rule in adopted.pinned.items()}
    assert rulebook.in_force(config(tmp_path), replace(adopted, pinned=bare)).unadopted == {}


def test_another_title_or_source_changes_no_rule() -> None:
    row = codes.ROWS["xid:48"]
    assert not_adopted(pin({"xid:48": row}), pin({"xid:48": replace(row, title="other", source="other")})) == {}


def test_a_file_that_was_changed_after_its_adoption_is_said_and_not_obeyed(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('version = "a"')
    configured = config(tmp_path, policy_file=str(path))
    adopted = rulebook.first(configured)
    assert rulebook.unheeded(configured, adopted) is None
    path.write_text('version = "b"\nlevel = "observe"')
    assert rulebook.in_force(configured, adopted).level is Level.REPAIR
    assert "is not what was adopted" in (rulebook.unheeded(configured, adopted) or "")
    path.unlink()
    assert "cannot read" in (rulebook.unheeded(configured, adopted) or "")
