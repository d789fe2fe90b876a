"""Series of many nodes, kept as text."""

from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from controller.core.fleet.views import GpuView, NodeView, ReplicaView, View
from controller.telling.series import NodeSeries, by_node, opened
from vocab.events import Severity
from vocab.lines import ConditionLine, Subject
from vocab.metrics import CONTROLLER
from vocab.states import ClearsOn
from wire.exposition import Exposition


def gpu(uuid: str, state: str = "healthy") -> GpuView:
    return GpuView(
        uuid=uuid, node="n1", index=0, name="H100", pci="", state=state, health="healthy", phase="in_service",
        fresh=True, placeable=True, stranded=False,
    )  # fmt: skip


def node(name: str, *gpus: GpuView) -> NodeView:
    return NodeView(
        node=name, virtual=False, level="repair", state="live", boot_id="b", driver="580", version="1", address="",
        paused=False, unknown_because=None, seen_at=None, gpus=gpus,
    )  # fmt: skip


def parsed(text: bytes) -> list[tuple[str, dict[str, str], float]]:
    families = text_string_to_metric_families(text.decode())
    return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


def test_a_node_is_told_with_its_gpus_and_anew_only_when_it_says_something_else() -> None:
    series, first = NodeSeries(), node("n1", gpu("GPU-1"))
    told = series.of([first])
    assert parsed(told.gpu_states) == [("corral_gpu_state", {"node": "n1", "gpu": "GPU-1", "state": "healthy"}, 1.0)]
    assert parsed(told.node_info) == [("corral_node_info", {"node": "n1", "virtual": "false", "level": "repair"}, 1.0)]
    assert series.of([replace(first, seen_at=9.0)]) == told
    (sample,) = parsed(series.of([replace(first, level="observe")]).node_info)
    assert sample[1]["level"] == "observe"
    told = series.of([replace(first, gpus=(gpu("GPU-1", "failed"),))])
    assert [labels["state"] for _, labels, _ in parsed(told.gpu_states)] == ["failed"]
    assert told.gpus == {"failed": 1}


def test_a_node_that_is_gone_is_told_and_counted_no_more() -> None:
    series = NodeSeries()
    told = series.of([node("n1", gpu("GPU-1")), node("n2", gpu("GPU-2"), gpu("GPU-3", "failed"))])
    assert (told.gpus, told.nodes) == ({"healthy": 2, "failed": 1}, {"live": 2})
    told = series.of([node("n2", gpu("GPU-2"))])
    assert [labels["gpu"] for _, labels, _ in parsed(told.gpu_states)] == ["GPU-2"]
    assert [labels["node"] for _, labels, _ in parsed(told.node_info)] == ["n2"]
    assert (told.gpus, told.nodes) == ({"healthy": 1}, {"live": 1})


def condition(subject: Subject, since: float, device: str | None = None) -> ConditionLine:
    return ConditionLine(
        at=9.0, subject=subject, device=device, id=f"c-{since}", code="pcie_width", state="open",
        severity=Severity.ERROR, since=since, last_at=9.0, clears_on=ClearsOn.SIGNAL,
    )  # fmt: skip


def test_an_open_condition_is_told_with_where_it_is_and_since_when() -> None:
    replica = ReplicaView(
        replica="chat-1", deployment="chat", state="ready", url="", node="n1", gpus=("GPU-1",), admitting=True,
        ready=True, model="m",
    )  # fmt: skip
    view = View(
        paused=False, settled=True, nodes=(node("n1", gpu("GPU-1")),), deployments=(), replicas=(replica,),
        incidents=(), holds=(), actions=(), counts={},
        conditions=(
            condition(Subject(gpu="GPU-1"), 5.0),
            condition(Subject(gpu="GPU-1"), 4.0),
            condition(Subject(gpu="GPU-gone"), 3.0),
            condition(Subject(node="n1"), 2.0, device="mlx5_0"),
            condition(Subject(replica="chat-1"), 1.0),
        ),
    )  # fmt: skip
    none = {"code": "pcie_width"} | dict.fromkeys(("node", "gpu", "replica", "deployment", "device"), "")
    assert [(labels, value) for _, labels, value in parsed(opened(view))] == [
        (none | {"node": "n1", "gpu": "GPU-1"}, 4.0),
        (none | {"gpu": "GPU-gone"}, 3.0),
        (none | {"node": "n1", "device": "mlx5_0"}, 2.0),
        (none | {"node": "n1", "replica": "chat-1", "deployment": "chat"}, 1.0),
    ]


def test_a_name_with_a_quote_is_read_as_it_is() -> None:
    (sample,) = parsed(by_node("corral_node_report_age_seconds", {'a"b\\c': 1.5}))
    assert sample == ("corral_node_report_age_seconds", {"node": 'a"b\\c'}, 1.5)


def test_series_kept_as_text_stand_beneath_the_head_of_their_metric() -> None:
    exposition = Exposition(CONTROLLER)
    exposition.written["corral_node_report_age_seconds"] = by_node("corral_node_report_age_seconds", {"n1": 2.0})
    lines = exposition.render()[0].decode().splitlines()
    place = lines.index('corral_node_report_age_seconds{node="n1"} 2.000')
    assert lines[place - 1] == "# TYPE corral_node_report_age_seconds gauge"
