"""Programs of the operating system that some tests run: Prometheus, Alertmanager, systemd, a browser.

A machine without one skips the tests that need it and hears what to install. In CI (``CI=true``) nothing
may be skipped silently, so there the same test fails.
"""

import os
import shutil
from typing import NoReturn

import pytest

SEARCHED = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))  # daemons live in sbin on Debian


def need(program: str, install: str) -> str:
    """The absolute path of ``program``; without it the calling test skips (fails in CI) naming ``install``."""
    found = shutil.which(program, path=SEARCHED)
    if found is None:
        lacking(f"{program} is not installed; run: {install}")
    return found


def lacking(what: str) -> NoReturn:
    """End the calling test because the machine lacks something: skipped for a person, failed in CI."""
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)
