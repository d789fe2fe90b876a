"""What the tests do on a machine that lacks a program."""

import os

import pytest

from tests.programs import need


def test_a_program_on_the_path_is_found():
    assert os.access(need("sh", "apt-get install dash"), os.X_OK)


def test_a_missing_program_skips_and_says_what_to_install(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such-program is not installed; run: apt-get install it"):
        need("no-such-program", "apt-get install it")


def test_a_missing_program_fails_in_ci(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no-such-program is not installed"):
        need("no-such-program", "apt-get install it")
