import os
import subprocess
import sys

import pytest

from tests.programs import need

CHILD = (
    "import re,pathlib; print(re.search(r'CapAmb:\\s*(\\w+)', pathlib.Path('/proc/self/status').read_text()).group(1))"
)
PARENT = f"""
import subprocess, sys
from agent.privileges import keep_to_ourselves
show = [sys.executable, "-c", {CHILD!r}]
before = subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip()
keep_to_ourselves()
after = subprocess.run(show, capture_output=True, text=True, check=True).stdout.strip()
print(before, after)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a process an ambient capability")
def test_what_the_agent_starts_inherits_no_capability() -> None:
    setpriv = need("setpriv", "apt-get install util-linux")
    given = [setpriv, "--inh-caps", "+syslog", "--ambient-caps", "+syslog", sys.executable, "-c", PARENT]
    before, after = subprocess.run(given, capture_output=True, text=True, check=True).stdout.split()
    assert int(before, 16) != 0
    assert int(after, 16) == 0
