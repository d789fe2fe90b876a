#!/usr/bin/env python3
"""ipmitool in the place of the real one: chassis power, with its words and exit codes. Its state is a folder's files.

``power``: on or off. ``says``: what it prints on standard error, and then fails. ``log``: every argument list.
"""

import sys
from pathlib import Path


def main(words: list[str]) -> int:
    """Answer one call."""
    folder = Path(words[words.index("-H") + 1].replace("%", "/"))
    with (folder / "log").open("a") as log:
        log.write(" ".join(words) + "\n")
    says, power = folder / "says", folder / "power"
    if says.exists():
        sys.stderr.write(says.read_text())
        return 1
    verb = words[-1]
    state = power.read_text()
    if verb == "status":
        sys.stdout.write(f"Chassis Power is {state}\n")
    elif verb == "cycle" and state == "off":
        sys.stderr.write("Set Chassis Power Control to Cycle failed: Command not supported in present state\n")
        return 1
    else:
        power.write_text("on")
        sys.stdout.write(f"Chassis Power Control: {'Cycle' if verb == 'cycle' else 'Up/On'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
