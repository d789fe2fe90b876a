"""The fuzz targets take their seeds, and some noise, without atheris: so they do not rot between two runs."""

import importlib

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

NAMES = ("batch", "beat", "gguf", "kernel", "recording", "roothelper", "scan")


def target(name):
    return importlib.import_module(f"tests.fuzz.{name}").TARGET


@pytest.mark.parametrize("name", NAMES)
def test_target_takes_its_seeds(name):
    for seed in list(target(name).seeds())[:20]:
        target(name).one(seed)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_target_takes_noise_in_its_seeds(name, data):
    seed = data.draw(st.sampled_from(list(target(name).seeds())))[:2000]
    at = data.draw(st.integers(0, len(seed)))
    gone = data.draw(st.integers(0, 20))
    target(name).one(seed[:at] + data.draw(st.binary(max_size=20)) + seed[at + gone :])
