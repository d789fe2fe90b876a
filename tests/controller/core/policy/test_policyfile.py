"""A policy file holds differences, and what is wrong in it is named by key and rule."""

import pytest

from controller.core.fleet.settings import Limits
from controller.core.policy.policyfile import doubts, read
from vocab.errors import ConfigError
from vocab.states import Level

WRONG = [
    ('levle = "cordon"', "levle: there is no such key"),
    ('level = "most"', "level: Invalid enum value 'most'; one of observe, fence, cordon, repair"),
    ('[rules."xid:48"]\nrecovery = "reboot"', "recovery: Invalid enum value 'reboot'; one of none, "),
    ("[limits]\ncordons = 0", "limits.cordons: must be at least 1"),
    ("[limits]\ncordons_ratio = 1.5", "limits.cordons_ratio: must be over 0 and at most 1"),
    ("[limits]\nwindow_s = 0.0", "limits.window_s: must be over 0"),
    ('[rules."gpu_lots"]\nshadow = true', 'rules."gpu_lots": there is no such code'),
    ('[rules."gpu_lots"]\nshadow = true', "did you mean gpu_lost"),
    ('[rules."xid:4800"]\nshadow = true', 'rules."xid:4800": there is no such code'),
    ('[rules."xid:4800"]\nshadow = true', "did you mean xid:48"),
    ('[rules."sxid:2"]\nshadow = true', 'rules."sxid:2": there is no such code'),
    ('[rules."xid:48"]\nseverty = "info"', 'rules."xid:48"'),
    ('[rules."xid:48"]\n', 'rules."xid:48": it changes nothing'),
    ('[rules."xid:31"]\nseverity = "error"\nrecovery = "reset_gpu"', "opens no condition"),
    ('[pools.test.rules."xid:48"]\nlevel = "x"', 'pools.test.rules."xid:48".level: Invalid enum value'),
    ("[limits", "not valid TOML"),
    ('version = ""', "version: must be a name of 1 to 60 printable characters"),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text.encode(), "policy.toml")
    assert str(caught.value).startswith("policy.toml: ")
    assert said in str(caught.value)


def test_all_that_is_wrong_is_told_at_once() -> None:
    text = b'level = "most"\n[rules."gpu_lots"]\nshadow = true\n[rules."xid:48"]\n[pools.a]\nlevel = 3\nlimit = 1\n'
    with pytest.raises(ConfigError) as caught:
        read(text, "policy.toml")
    keys = [line.removeprefix("policy.toml: ").partition(": ")[0] for line in str(caught.value).splitlines()]
    assert keys == ["level", 'rules."gpu_lots"', 'rules."xid:48"', "pools.a.limit", "pools.a.level"]


def test_a_number_that_only_the_catalogue_does_not_know_is_allowed_and_doubted() -> None:
    found = doubts(read(b'[rules."xid:48"]\nshadow = true\n[pools.a.rules."xid:480"]\nshadow = true\n'))
    (doubt,) = found
    assert doubt.startswith('pools.a.rules."xid:480": the catalogue does not know this number')


def test_an_empty_file_is_the_built_in_policy_under_another_name() -> None:
    settings = read(b"")
    assert (settings.level, settings.limits, settings.rules) == (Level.REPAIR, Limits(), {})
    assert settings.policy.startswith("file-")


def test_a_pool_differs_from_the_file_and_the_file_from_what_is_built_in() -> None:
    text = b'version = "v2"\n[limits]\ncordons = 3\n[pools.test]\nlevel = "observe"\nlimits.starts = 1\n'
    settings = read(text)
    assert settings.policy == "v2"
    assert (settings.limits_of("test").cordons, settings.limits_of("test").starts) == (3, 1)
    assert (settings.limits_of("other").cordons, settings.limits_of("other").starts) == (3, Limits().starts)


def test_a_rule_of_a_pool_goes_before_the_common_one_field_by_field_and_by_board() -> None:
    common = '[rules."xid:48"]\nrecovery = "reboot_node"\nmodels = ["H100"]\n'
    text = (common + '[pools.test.rules."xid:48"]\nlevel = "cordon"\n').encode()
    settings = read(text)
    here = settings.rule("xid:48", "test", "NVIDIA H100 80GB HBM3")
    assert (here.recovery, here.level) == ("reboot_node", Level.CORDON)
    assert settings.rule("xid:48", None, "NVIDIA L40S").recovery is None


@pytest.mark.parametrize("table", ["limits", "pools.test.limits"])
def test_a_limit_that_there_is_not_is_told_with_those_that_there_are(table: str) -> None:
    with pytest.raises(ConfigError) as told:
        read(f"[{table}]\ncordon = 3\n".encode(), "p.toml")
    assert f"{table}.cordon: there is no such limit; known are " in str(told.value)
    assert "cordons, " in str(told.value)


def test_all_that_is_wrong_within_the_limits_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as told:
        read(b"[limits]\ncordons_ratio = 1.5\nwindow_s = 0.0\nrepairs = 0\n", "p.toml")
    assert all(f"limits.{name}: must be" in str(told.value) for name in ("cordons_ratio", "window_s", "repairs"))
