"""How long a survey of a fleet's month takes.

    python -m tests.bench.survey [--nodes 250] [--days 30] [--lines 20000] [--keep FOLDER]

The logs are made from a seed (``tests.bench.survey_logs``), a file a node with ``--lines`` lines of others and the
node's faults, among them storms of 5,000 lines. Only the survey is timed: reading, judging and writing the page.
"""

import argparse
import json
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from corral.progress import told
from corral.survey.run import Wish, survey
from corral.survey.sections import headline
from corral.survey.write import written
from tests.bench.survey_logs import START, node_name, write


def make(folder: Path, nodes: int, days: int, lines: int) -> int:
    """Write the logs; their bytes."""
    missing = [n for n in range(nodes) if not (folder / f"{node_name(n)}.log").exists()]
    with ProcessPoolExecutor() as pool:
        list(pool.map(partial(_write, folder, days, lines), missing, chunksize=4))
    return sum(file.stat().st_size for file in folder.iterdir())


def _write(folder: Path, days: int, lines: int, number: int) -> int:
    return write(folder, number, days, lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Make, survey, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=250)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--keep", type=Path, help="a folder for the logs and the report, kept")
    wish = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = wish.keep or Path(temporary)
        logs = folder / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        size = make(logs, wish.nodes, wish.days, wish.lines)
        began = time.monotonic()
        with told() as tell:
            found = survey(Wish(paths=(str(logs),)), tell, now=START.timestamp() + wish.days * 86_400)
        (folder / "survey.html").write_text(written(found, "html"), encoding="utf-8")
        (folder / "survey.md").write_text(written(found, "markdown"), encoding="utf-8")
        took = time.monotonic() - began
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    events = sum(fault.events for fault in found.faults)
    print(json.dumps({
        "nodes": found.nodes, "days": wish.days, "lines": found.lines, "mebibytes": round(size / 2**20),
        "events": events, "seconds": round(took, 1), "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1), "most_mebibytes_of_a_process": round(memory / 1024),
        "headline": headline(found),
    }))  # fmt: skip


if __name__ == "__main__":
    main()
