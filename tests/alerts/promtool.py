"""promtool: Debian's own, or the one that PROMTOOL names, to see the rules under another version of Prometheus."""

import os
import subprocess

from tests.programs import need


def program() -> str:
    return os.environ.get("PROMTOOL") or need("promtool", "apt-get install prometheus")


def promtool(*arguments: str) -> str:
    """What it says; what it finds wrong fails the test."""
    seldom = {**os.environ, "GOGC": "800"}  # it lives for seconds: a quarter of them went into collecting garbage
    done = subprocess.run([program(), *arguments], env=seldom, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
