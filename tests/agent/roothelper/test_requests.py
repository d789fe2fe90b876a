"""The parser of the one program that runs as root: whatever comes, it is a known verb or it is refused."""

import json
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.roothelper.duty import Duty
from agent.roothelper.limits import Ledger
from agent.roothelper.requests import MOST_BYTES, AnyRequest, ResetGpus, StopService, encoded, request_of
from tests.agent.roothelper.machine import GPUS, SERVICES, FakeMachine
from vocab.clock import VirtualClock
from vocab.errors import InputError

KNOWN = get_args(AnyRequest)
WORDS = st.sampled_from(
    ["verb", "unit", "gpus", "order", "limit_s", "reset", "reboot", "stop_service", "ask", "exec", *GPUS, *SERVICES]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | WORDS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10) | WORDS, inner, max_size=5),
    max_leaves=20,
)


def understood(line: bytes) -> AnyRequest | None:
    try:
        return request_of(line)
    except InputError:
        return None


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(line):
    assert understood(line) is None or isinstance(understood(line), KNOWN)


@given(JSON)
def test_any_json_is_a_request_or_refused(value):
    found = understood(json.dumps(value).encode())
    assert found is None or isinstance(found, KNOWN)


@given(st.dictionaries(st.text(max_size=10) | WORDS, JSON, max_size=6), st.text(max_size=20) | WORDS)
def test_only_a_verb_of_the_list_ever_reaches_the_machine(tmp_path_factory, body, verb):
    machine = FakeMachine()
    folder = tmp_path_factory.mktemp("helper")
    duty = Duty(machine, SERVICES, folder / "PAUSE", Ledger(folder / "limits"), VirtualClock(1000.0))
    found = understood(json.dumps(body | {"verb": verb}).encode())
    if found is not None:
        duty.perform(found)
    assert all(did.split()[0] in {"stop", "start", "collect", "reset", "reboot"} for did in machine.did)
    assert found is not None or machine.did == []


@pytest.mark.parametrize(
    "unit",
    ["sshd", "../sshd.service", "a b.service", "x.service\n", "--now.service;reboot", "", "x" * 200 + ".service"],
)
def test_a_name_that_is_no_unit_is_refused(unit):
    assert understood(json.dumps({"verb": "stop_service", "unit": unit}).encode()) is None


@pytest.mark.parametrize("gpu", ["0", "GPU-", "GPU-0 -i 1", "GPU-00000000-0000\n", "--help", "GPU-zzzzzzzz"])
def test_a_name_that_is_no_gpu_is_refused(gpu):
    assert understood(json.dumps({"verb": "reset", "gpus": [gpu]}).encode()) is None


def test_an_unknown_argument_and_an_unknown_verb_are_refused():
    assert understood(b'{"verb":"reboot","force":true}') is None
    assert understood(b'{"verb":"shell","command":"id"}') is None
    assert understood(b'{"verb":"reset","gpus":[]}') is None


def test_a_request_that_is_too_long_is_refused():
    with pytest.raises(InputError, match="more than"):
        request_of(b" " * (MOST_BYTES + 1))


def test_what_is_encoded_is_understood():
    for request in (ResetGpus(gpus=GPUS), StopService(unit=SERVICES[0])):
        assert request_of(encoded(request)) == request
