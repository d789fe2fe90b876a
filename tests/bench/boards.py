"""How long the boards' slowest queries take over 10,000 GPUs, with the rules that record and without.

    python -m tests.bench.boards [--gpus 10000] [--every 30]

An hour of series as agents and engines export them, made up and written into a real Prometheus' store by promtool; the
rules of dashboards/rules backfilled by promtool from that Prometheus. Asked is what Grafana asks for the last hour of
the Fleet and Reliability boards: a point every 15 s. Best of three, the first of which warms the page cache.
"""

import argparse
import json
import random
import shutil
import subprocess
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from dashboards.recorded import DOING, FIRST_TOKEN, POWER, UTILIZATION, XID_ERRORS, XIDS
from tests.e2e.fleet import ROOT
from tests.ports import free_ports

HOUR_S, STEP_S = 3600, 15
CODES = (48, 74, 79, 95, 119, 120)
BUCKETS = ("0.01", "0.05", "0.1", "0.5", "1.0", "2.5", "5.0", "10.0", "40.0", "+Inf")
OF_GPU = ("utilization_ratio", "sm_active_ratio", "dram_active_ratio", "tensor_active_ratio", "power_watts")

# What a panel shows, what it asks with the rules, and what it would have to ask without.
ASKED = (
    ("mean utilization", UTILIZATION.name, UTILIZATION.expr),
    ("power of all GPUs", POWER.name, POWER.expr),
    ("what the GPUs do", DOING.name, DOING.expr),
    (
        "Xid errors by code",
        f"sum by (xid) (sum_over_time({XID_ERRORS.name}[1m]))",
        "sum by (xid) (increase(corral_gpu_xid_errors_total[4m])) > 0",
    ),
    (
        "nodes with the most Xid errors",
        f"topk(20, sum by (node) (sum_over_time({XIDS.name}[1h])))",
        "topk(20, sum by (node) (increase(corral_gpu_xids_total[1h]))) > 0",
    ),
    (
        "time to first token by replica",
        f"topk(10, {FIRST_TOKEN.name})",
        f"topk(10, {FIRST_TOKEN.expr})",
    ),
)


def samples(gpus: int, start: int, every: int) -> Iterator[tuple[str, str, str, list[float]]]:
    """Each series: metric, type, labels, and a value for each time."""
    count = HOUR_S // every
    for name in OF_GPU:
        for gpu in range(gpus):
            yield f"corral_gpu_{name}", "gauge", of(gpu), [random.random() for _ in range(count)]
    for gpu in range(gpus):
        yield "corral_gpu_activity", "gauge", f'{of(gpu)},doing="memory-bound",by=""', [1.0] * count
    for gpu in range(gpus):
        counts = [float((gpu % 100 == 0) * (at // 10)) for at in range(count)]
        yield "corral_gpu_xids_total", "counter", of(gpu), counts
    for gpu in range(gpus):
        fails = gpu % 100 == 0
        for code in CODES:
            values = [float((fails and code == 79) * (at // 10)) for at in range(count)]
            yield "corral_gpu_xid_errors_total", "counter", f'{of(gpu)},xid="{code}"', values
    for replica in range(gpus // 8):
        labels = f'deployment="chat",replica="chat-{replica}",node="n{replica}",model_name="m",engine="0"'
        for place, bucket in enumerate(BUCKETS):
            counts = [float(at * (place + 1)) for at in range(count)]
            yield "vllm:time_to_first_token_seconds_bucket", "histogram", f'{labels},le="{bucket}"', counts


def of(gpu: int) -> str:
    """The labels of a GPU's series."""
    return f'node="n{gpu // 8}",gpu="GPU-{gpu:08d}-aaaa-bbbb-cccc-dddddddddddd"'


def write(file: TextIO, gpus: int, start: int, every: int) -> int:
    """All of it as OpenMetrics; how many series."""
    last, count = "", 0
    for name, kind, labels, values in samples(gpus, start, every):
        if name != last:
            family = name.removesuffix("_total").removesuffix("_bucket")
            file.write(f"# TYPE {family} {kind}\n")
            last = name
        series = f"{name}{{{labels}}}"
        file.writelines(f"{series} {value:.4g} {start + every * at}\n" for at, value in enumerate(values))
        count += 1
    file.write("# EOF\n")
    return count


def asked(address: str, expression: str, start: int) -> float:
    """Seconds of a range query, the best of three."""
    query = {"query": expression, "start": start + 600, "end": start + HOUR_S, "step": STEP_S}
    url = f"{address}/api/v1/query_range?{urllib.parse.urlencode(query)}"
    took = []
    for _ in range(3):
        began = time.perf_counter()
        with urllib.request.urlopen(url, timeout=300) as response:
            answer = json.load(response)
        took.append(time.perf_counter() - began)
        assert answer["data"]["result"], f"{expression} gives nothing"
    return min(took)


def ready(address: str) -> None:
    """Return once Prometheus answers."""
    for _ in range(300):
        try:
            urllib.request.urlopen(f"{address}/-/ready", timeout=5).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise SystemExit("Prometheus did not start")


class Store:
    """A Prometheus on ``folder``, which is stopped and started to take in new blocks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.blocks = folder / "tsdb"
        (port,) = free_ports(1)
        self.address = f"http://127.0.0.1:{port}"
        (folder / "prometheus.yml").write_text("global: {scrape_interval: 15s}\n")

    def __enter__(self) -> "Store":
        with (self._folder / "prometheus.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={self._folder}/prometheus.yml",
                    f"--storage.tsdb.path={self.blocks}",
                    f"--web.listen-address={self.address.removeprefix('http://')}",
                    "--storage.tsdb.retention.time=10y",
                ],
                stdout=log,
                stderr=log,
            )
        ready(self.address)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)


def measure(folder: Path, gpus: int, every: int) -> None:
    """Fill, record, ask, and print the table."""
    start = int(time.time()) // 7200 * 7200 - 2 * 7200  # within one block, and over
    text, store = folder / "series.txt", Store(folder)
    with text.open("w") as file:
        count = write(file, gpus, start, every)
    promtool("tsdb", "create-blocks-from", "openmetrics", str(text), str(store.blocks))
    text.unlink()
    rules = ROOT / "dashboards" / "rules" / "boards.yml"
    with store:
        before = {name: asked(store.address, without, start) for name, _, without in ASKED}
        promtool(
            "tsdb", "create-blocks-from", "rules", f"--start={start}", f"--end={start + HOUR_S}", "--eval-interval=15s",
            f"--url={store.address}", f"--output-dir={store.blocks}", str(rules),
        )  # fmt: skip
    with store:
        print(f"| {gpus:,} GPUs, {count:,} series, an hour, a point each 15 s | without rules, s | with, s |")
        print("|---|---|---|")
        for name, expression, _ in ASKED:
            print(f"| {name} | {before[name]:.2f} | {asked(store.address, expression, start):.3f} |")


def promtool(*arguments: str) -> None:
    """Run it."""
    subprocess.run(["promtool", *arguments], check=True, stdout=subprocess.DEVNULL)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=30, help="seconds between two samples")
    options = parser.parse_args()
    if shutil.which("promtool") is None:
        raise SystemExit("promtool is not installed; run: apt-get install prometheus")
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), options.gpus, options.every)


if __name__ == "__main__":
    main()
