"""The command line against a small real HTTP server that answers as a controller does."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import click
import msgspec
import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from corral.__main__ import COMMANDS, cli
from corral.commands.explain import causal, story
from vocab.errors import InputError, Refused, Unreachable
from vocab.events import Event, Evidence, Recovery, Scope, Severity, Source
from vocab.lines import ActionLine, AnyLine, EventLine, HoldLine, IncidentLine, StateLine, Subject, Target
from vocab.metrics import CONTROLLER
from vocab.states import ActionKind, ActionState, ClearsOn
from wire.exposition import Exposition
from wire.server import decode, listen, make_app, reply

GPU = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
OTHER = "GPU-bbbbbbbb-0000-0000-0000-000000000002"
KERNEL_LINE = "NVRM: Xid (PCI:0000:19:00): 79, GPU has fallen off the bus."
EVENT = Event(
    id="0123456789abcdef0123",
    at="2026-01-01T00:00:00.000000Z",
    node="n1",
    gpu=GPU,
    code="xid:79",
    severity=Severity.CRITICAL,
    recovery=Recovery.REBOOT_NODE,
    scope=Scope.GPU,
    source=Source.KERNEL,
    text="GPU has fallen off the bus",
    evidence=(Evidence(source="kmsg", line=KERNEL_LINE),),
)
STORY: list[AnyLine] = [
    EventLine(at=1.0, subject=Subject(gpu=GPU), event=EVENT),
    HoldLine(
        at=2.0,
        subject=Subject(gpu=GPU),
        id="h1",
        op="placed",
        owner="policy",
        reason="xid:79",
        clears_on=ClearsOn.REBOOT,
    ),
    ActionLine(
        at=3.0,
        subject=Subject(node="n1"),
        id="a1",
        of=ActionKind.REBOOT_NODE,
        state=ActionState.WAITING,
        token="1.4",
        rule="xid:79",
        policy="built-in",
        disrupts=(Subject(gpu=OTHER),),
        why="it takes other GPUs",
    ),
]

GROWN = IncidentLine(
    at=3.0,
    subject=Subject(gpu=GPU),
    id="i-1",
    state="updated",
    root=EVENT.id,
    code="xid:79",
    severity=Severity.CRITICAL,
    recovery=Recovery.REBOOT_NODE,
)


def gpu(uuid: str, index: int, state: str) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "index": index,
        "state": state,
        "holds": [],
        "readings": {"utilization_ratio": 1.0},
        "replica": None,
    }


def fleet(state: str = "healthy") -> dict[str, Any]:
    node = {
        "node": "n1",
        "virtual": True,
        "level": "repair",
        "state": "live",
        "gpus": [gpu(GPU, 0, state), gpu(OTHER, 1, "healthy")],
    }
    chat = {"name": "chat", "ready": 1, "wanted": 2, "min_ready": 1}
    waiting = {"id": "a1", "of": "reboot_node", "why": "it takes other GPUs"}
    return {"nodes": [node], "deployments": [chat], "incidents_open": [], "actions_waiting": [waiting], "paused": False}


class Controller:
    """Answers the paths that commands use and writes down what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.fleet = fleet()
        self.nodes: list[dict[str, Any]] = []
        self.done: list[dict[str, Any]] = []
        self.ahead: dict[str, Any] = {}
        self.incidents = [GROWN]
        with socket.socket() as door:
            door.bind(("127.0.0.1", 0))
            self.port = door.getsockname()[1]

    async def answer(self, request: web.Request) -> web.Response:
        body = decode(await request.read(), Any)
        self.asked.append((request.method, request.path_qs, body))
        if "dry_run" in request.query:
            return reply(self.ahead)
        match request.path:
            case "/api/v1/fleet":
                return reply(self.fleet)
            case "/api/v1/nodes":
                return reply(self.nodes)
            case "/api/v1/events":
                return reply([EVENT])
            case "/api/v1/incidents":
                return reply(self.incidents)
            case path if path.startswith("/api/v1/incidents/"):
                return self._incident(path.rpartition("/")[2])
            case path if path.endswith("/explain"):
                return reply(STORY)
            case "/api/v1/drains" | "/api/v1/releases" | "/api/v1/pause" | "/api/v1/resume" | "/api/v1/undo":
                return reply({"outcome": "done", "lines": self.done})
            case "/api/v1/holds" | "/api/v1/approvals" | "/api/v1/discards" | "/api/v1/holds/h1":
                return reply({"id": "h1"})
            case "/api/v1/holds/foreign":
                raise Refused("the hold belongs to ops; lift it with --force")
            case _:
                raise InputError(f"no such path: {request.path}")

    def _incident(self, name: str) -> web.Response:
        for incident in self.incidents:
            if incident.id == name:
                return reply({"incident": incident, "lines": STORY, "place": "n1/0", "halted": None})
        raise web.HTTPNotFound(reason="there is no such incident; /api/v1/incidents lists them")


@pytest.fixture
def controller() -> Iterator[Controller]:
    fake = Controller()
    loop = asyncio.new_event_loop()

    async def start() -> web.AppRunner:
        app = make_app(ready=lambda: (True, ""), metrics=Exposition(CONTROLLER))
        app.router.add_route("*", "/api/{rest:.*}", fake.answer)
        return await listen(app, f"127.0.0.1:{fake.port}")

    runner = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield fake
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def corral(controller: Controller, *arguments: str) -> Result:
    return CliRunner().invoke(
        cli,
        arguments,
        env={"CORRAL_URL": f"http://127.0.0.1:{controller.port}", "COLUMNS": "160"},
        standalone_mode=False,
    )


def test_an_incident_that_has_grown_is_open(controller: Controller) -> None:
    head, row = corral(controller, "incident", "list").output.splitlines()
    assert head.split() == ["INCIDENT", "LAST", "CHANGE", "STATE", "CODE", "SEVERITY", "ABOUT"]
    assert row.split()[3:] == ["open", "xid:79", "critical", "n1/0"]
    assert len(row) + len("i-0123456789abcdef") - len("i-1") <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name: str) -> None:
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.output


def test_status_shows_a_virtual_node_as_virtual_and_what_waits(controller: Controller) -> None:
    result = corral(controller, "status")
    assert result.return_value == 0
    for text in ("VIRTUAL", "healthy", "100%", "chat: 1 of 2 replicas ready", "corral approve a1"):
        assert text in result.output


@pytest.mark.parametrize("state", ["lost", "failed", "cordoned", "draining", "unknown"])
def test_status_answers_one_when_a_gpu_is_out_of_service(controller: Controller, state: str) -> None:
    controller.fleet = fleet(state)
    assert corral(controller, "status").return_value == 1


def test_explain_tells_the_story_in_order_with_the_raw_line(controller: Controller) -> None:
    text = corral(controller, "explain", "0").output
    parts = (KERNEL_LINE, "hold placed by policy", "reboot_node waiting as a1", OTHER[:16])
    places = [text.index(part) for part in (*parts, "Now: GPU n1/0 is healthy", "corral approve a1")]
    assert places == sorted(places)


def test_explain_names_what_an_action_takes_where_it_waits_and_not_at_each_later_step() -> None:
    waiting = STORY[2]
    assert isinstance(waiting, ActionLine)
    assert OTHER[:16] in story(waiting)
    assert OTHER[:16] not in story(msgspec.structs.replace(waiting, state=ActionState.RUNNING))


def test_explain_as_json_is_the_lines_themselves(controller: Controller) -> None:
    lines = corral(controller, "explain", GPU, "--json").output.splitlines()
    assert [msgspec.json.decode(line, type=AnyLine) for line in lines] == STORY


def test_events_as_json_is_one_event_a_line(controller: Controller) -> None:
    assert msgspec.json.decode(corral(controller, "events", "--json").output, type=Event) == EVENT


@pytest.mark.parametrize("name", [GPU, "aaaaaaaa", "0", "n1/0"])
def test_a_gpu_is_found_by_any_name_that_means_one(controller: Controller, name: str) -> None:
    corral(controller, "hold", name, "--reason", "riser")
    body = {"subject": {"gpu": GPU}, "reason": "riser", "force": False}
    assert controller.asked[-1] == ("POST", "/api/v1/holds", body)


@pytest.mark.parametrize("name", ["GPU-", "7", "zzz", "n2/0"])
def test_a_name_that_means_none_or_many_is_refused(controller: Controller, name: str) -> None:
    result = corral(controller, "hold", name, "--reason", "riser")
    assert isinstance(result.exception, InputError)
    assert result.exception.exit_code == 2


def test_another_owners_hold_is_refused_with_the_next_step(controller: Controller) -> None:
    result = corral(controller, "lift", "foreign", "--reason", "done")
    assert isinstance(result.exception, Refused)
    assert "--force" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        (("pause",), "/api/v1/pause"),
        (("approve", "a1"), "/api/v1/approvals"),
        (("discard", "--reason", "a bad probe"), "/api/v1/discards"),
        (("lift", "h1", "--reason", "done"), "/api/v1/holds/h1"),
        (("drain", "0", "--reason", "riser"), "/api/v1/drains"),
        (("drain", "--replica", "chat-1", "--reason", "riser"), "/api/v1/drains"),
        (("release", "0", "--reason", "new riser"), "/api/v1/releases"),
    ],
)
def test_the_other_orders_reach_the_controller(controller: Controller, arguments: tuple[str, ...], path: str) -> None:
    assert corral(controller, *arguments).exception is None
    assert controller.asked[-1][1] == path


@pytest.mark.parametrize("words", [(), ("--force",), ("--now",), ("--force", "--now")])
def test_force_and_now_of_a_drain_are_two_words(controller: Controller, words: tuple[str, ...]) -> None:
    assert corral(controller, "drain", "--replica", "chat-1", "--reason", "riser", *words).exception is None
    body = controller.asked[-1][2]
    assert (body["force"], body["now"]) == ("--force" in words, "--now" in words)


HARMFUL = (
    ("hold", "0", "--reason", "fan"),
    ("lift", "h1", "--reason", "done"),
    ("drain", "0", "--reason", "riser"),
    ("approve", "a1"),
    ("discard", "--reason", "look"),
    ("release", "0", "--reason", "new riser"),
    ("undo", "--since", "10m"),
)
AHEAD = {
    "kind": "preview",
    "held": [{"subject": {"gpu": GPU}, "reason": "riser"}],
    "moves": [
        {
            "replica": "chat-1",
            "where": {"node": "n1", "gpus": [GPU]},
            "to": {"node": "n1", "gpus": [OTHER]},
            "requests": 7,
            "drain_s": 130.0,
            "start_s": 41.2,
        }
    ],
    "floors": [{"deployment": "chat", "ready": 2, "without": 1, "min_ready": 2}],
    "budgets": [{"limit": 2, "used": 1, "of": "repairs at one time"}],
    "requests": 7,
    "longest_s": 130.0,
}


@pytest.mark.parametrize("arguments", HARMFUL, ids=lambda arguments: arguments[0])
def test_a_dry_run_of_every_harmful_command_asks_for_nothing_but_what_would_be(
    controller: Controller, arguments: tuple[str, ...]
) -> None:
    controller.ahead = AHEAD
    result = corral(controller, *arguments, "--dry-run")
    assert result.exception is None
    assert controller.asked[-1][1].endswith("?dry_run=1")
    for text in (
        f"would move chat-1 from n1 {GPU} to n1 {OTHER} (starts took 41 s), 7 requests in flight, gone within 130 s",
        "chat: 2 ready, 1 without these before any replacement, floor 2 — under its floor",
        "budget: 1 of 2 repairs at one time after this",
        "nothing was done; it takes 130 s at most; 7 requests are in flight there",
    ):
        assert text in " ".join(result.output.split())


def test_a_dry_run_says_which_nodes_a_group_leaves_and_takes_by_node(controller: Controller) -> None:
    where, to = (
        {"node": nodes[0], "gpus": ["g0", "g1", "g2", "g3"], "nodes": nodes}
        for nodes in (["n1", "n1", "n2", "n2"], ["n3", "n3", "n4", "n4"])
    )
    move = {**AHEAD["moves"][0], "replica": "wide-1", "where": where, "to": to}
    controller.ahead = {**AHEAD, "moves": [move], "groups": {"wide-1": ["n1", "n2"]}}
    text = " ".join(corral(controller, "drain", "0", "--reason", "riser", "--dry-run").output.split())
    assert "would move wide-1 from n1 g0, g1 and n2 g2, g3 to n3 g0, g1 and n4 g2, g3" in text
    assert "wide-1 is a group: all of it leaves n1 and n2 together" in text


def test_a_dry_run_of_what_is_refused_says_why_and_all_that_it_takes(controller: Controller) -> None:
    controller.ahead = {
        "kind": "preview",
        "refused": "approve: it would leave 0 of 1 replicas of chat that serve: with force (--force) it is done",
        "ordered": [{"of": "reboot_node", "subject": {"node": "n1"}}],
        "disrupts": [{"node": "n1"}, {"gpu": GPU}, {"gpu": OTHER}, {"replica": "chat-1"}],
        "places": {GPU: "n1/0", OTHER: "n1/1"},
        "floors": [{"deployment": name, "ready": 1, "without": 0, "min_ready": 1} for name in ("chat", "code")],
    }
    assert corral(controller, "approve", "a1", "--dry-run").output.splitlines() == [
        f"dry run: it would be refused: {controller.ahead['refused']}",
        "it asks for reboot_node of n1",
        "  which stops n1",
        "  which stops n1/0",
        "  which stops n1/1",
        "  which stops chat-1",
        "chat: 1 ready, 0 without these before any replacement, floor 1 — under its floor",
        "code: 1 ready, 0 without these before any replacement, floor 1 — under its floor",
    ]


def test_explain_names_every_node_on_which_a_group_starts() -> None:
    waiting = STORY[2]
    assert isinstance(waiting, ActionLine)
    target = Target(node="n1", gpus=("g0", "g1"), nodes=("n1", "n2"))
    start = msgspec.structs.replace(waiting, of=ActionKind.START_REPLICA, state=ActionState.ORDERED, target=target)
    assert "start_replica ordered on n1 and n2:" in story(start)


def test_an_undo_says_what_it_lifted_called_off_and_cannot_undo(controller: Controller) -> None:
    subject = {"gpu": GPU}
    controller.done = [
        {"kind": "hold", "op": "lifted", "id": "h1", "subject": subject},
        {"kind": "action", "state": "cancelled", "of": "drain", "subject": {"replica": "chat-1"}},
        {"kind": "note", "code": "not_undone", "text": "reset_gpu done: n1 reports done", "subject": subject},
    ]
    result = corral(controller, "undo", "--since", "10m", "--rule", "xid:48")
    assert controller.asked[-1][2] == {"since_s": 600.0, "rule": "xid:48", "reason": "undone by an operator"}
    assert result.return_value == 0
    for text in (
        "lifted h1 on",
        "called off drain of chat-1",
        f"cannot undo, on {GPU}: reset_gpu done",
        "1 holds lifted",
    ):
        assert text in result.output
    controller.done = []
    assert corral(controller, "undo", "--since", "1h").return_value == 1
    assert isinstance(corral(controller, "undo", "--since", "soon").exception, click.UsageError)


@pytest.mark.parametrize(
    ("options", "body", "said"),
    [
        ((), {}, "everywhere"),
        (("--pool", "test"), {"pool": "test"}, "in pool test"),
        (("--node", "n1"), {"node": "n1"}, "on n1"),
    ],
)
def test_the_red_button_names_what_it_stops_and_how_it_ends(
    controller: Controller, options: tuple[str, ...], body: dict[str, str], said: str
) -> None:
    controller.done = [{"kind": "note"}]
    paused = corral(controller, "pause", "--reason", "look", *options)
    assert controller.asked[-1] == ("POST", "/api/v1/pause", {"reason": "look", **body})
    assert f"paused {said}" in paused.output
    assert " ".join(("corral resume", *options)) in paused.output


def test_a_resume_names_what_is_still_paused(controller: Controller) -> None:
    controller.done = [{"kind": "note"}]
    controller.fleet["pauses"] = [{"scope": "pool", "name": "test", "since": 1.0, "why": "paused by ada: a new driver"}]
    said = corral(controller, "resume").output
    assert "resumed everywhere" in said
    assert "still paused in pool test: paused by ada: a new driver" in said
    assert "corral resume --pool test" in said


def test_a_red_button_without_a_controller_says_how_a_file_does_it() -> None:
    result = CliRunner().invoke(cli, ["pause", "--url", "http://127.0.0.1:9"], standalone_mode=False)
    assert isinstance(result.exception, Unreachable)
    assert "touch /etc/corral/PAUSE" in str(result.exception)


def test_a_release_names_the_holds_that_ended_and_nothing_of_how_it_is_stored(controller: Controller) -> None:
    subject = {"gpu": "GPU-other"}
    controller.done = [
        {"kind": "state", "subject": subject},
        {"kind": "hold", "op": "placed", "id": "h-another", "subject": subject},
        {"kind": "hold", "op": "lifted", "id": "h-ended", "subject": subject},
    ]
    said = corral(controller, "release", "0", "--reason", "new riser").output
    assert said.strip().endswith(" released; lifted: h-ended")


def test_a_drain_names_the_hold_that_it_placed(controller: Controller) -> None:
    controller.done = [{"kind": "hold", "op": "placed", "id": "h-mine", "subject": {"gpu": "GPU-other"}}]
    said = corral(controller, "drain", "0", "--reason", "riser").output
    assert said.strip() == "drain ordered; hold h-mine placed; watch it with: corral status"


def test_nobody_there_is_exit_code_three_with_the_next_step() -> None:
    result = CliRunner().invoke(cli, ["status"], env={"CORRAL_URL": "http://127.0.0.1:9"}, standalone_mode=False)
    assert isinstance(result.exception, Unreachable)
    assert result.exception.exit_code == 3
    assert "does not answer: connection refused. Is it running?" in str(result.exception)
    assert "corral up" in str(result.exception)


def test_an_agent_that_is_not_there_is_named_by_its_own_setting() -> None:
    result = CliRunner().invoke(cli, ["record", "--agent", "http://127.0.0.1:9"], standalone_mode=False)
    assert isinstance(result.exception, Unreachable)
    assert "set CORRAL_AGENT_URL or --agent" in str(result.exception)


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1", "http://", "127.0.0.1:7400"])
def test_an_address_that_is_none_is_wrong_input_not_an_outage(url: str) -> None:
    result = CliRunner().invoke(cli, ["status"], env={"CORRAL_URL": url}, standalone_mode=False)
    assert isinstance(result.exception, InputError)
    assert "CORRAL_URL" in str(result.exception)


def test_status_fits_eighty_columns(controller: Controller) -> None:
    (node,) = controller.fleet["nodes"]
    for each in node["gpus"]:
        each["state"], each["replica"] = "cordoned", "chat-7bb8e7"
        each["readings"] |= {
            "sm_active_ratio": 1.0,
            "temperature_c": 87.0,
            "power_w": 700.0,
            "memory_used_bytes": 80.0 * 2**30,
        }
    table = corral(controller, "status").output.splitlines()
    assert "80 GiB" in table[4]
    assert "…" not in "".join(table)


def test_status_says_why_gpus_are_unknown_and_who_holds_the_node(controller: Controller) -> None:
    hold = {"id": "h7", "owner": "operator", "reason": "new [PSU]"}
    controller.fleet["nodes"][0] |= {"unknown_because": "LIBRARY_NOT_FOUND: install the driver", "holds": [hold]}
    output = corral(controller, "status").output
    assert "LIBRARY_NOT_FOUND: install the driver" in output
    assert "h7 on the node by operator: new [PSU]" in output


def test_status_says_who_else_is_at_work_on_a_node(controller: Controller) -> None:
    condition = {"code": "other_remediator", "severity": "warning"}
    who = "drained in slurm by somebody else (NHC: [disk])"
    controller.fleet["nodes"][0] |= {"conditions": [condition], "others": [who]}
    output = corral(controller, "status").output
    assert "condition other_remediator warning on the node" in output
    assert f"Corral waits for: {who}" in output


def test_status_names_the_owner_of_gpu_work_that_is_no_server(controller: Controller) -> None:
    owner = "slurm job-42, uid 1000"
    work = {"replica": "job-42@n1", "state": "ready", "model": "", "owner": owner, "observed": True, "serves": False}
    controller.fleet["replicas"] = [work | {"gpus": [GPU, OTHER]}]
    output = corral(controller, "status").output
    assert "observed job-42@n1 works on GPU 0, 1 by slurm job-42, uid 1000; Corral never signals it" in output


def test_status_says_where_an_approval_takes_force_and_why(controller: Controller) -> None:
    waiting = {"id": "a1", "of": "reboot_node", "subject": {"node": "n1"}, "why": "it takes other GPUs"}
    chat = {"replica": "chat-1", "deployment": "chat", "state": "ready", "ready": True, "node": "n1", "gpus": [OTHER]}
    controller.fleet |= {"actions_waiting": [waiting], "replicas": [chat]}
    output = " ".join(corral(controller, "status").output.split())
    assert "corral approve a1 --force (without it refused: it would leave 0 of 1 replicas of chat" in output


def test_status_shows_what_a_pause_holds_back(controller: Controller) -> None:
    held = {"id": "a2", "of": "reboot_node", "subject": {"node": "n1"}, "why": "automation is paused: freeze"}
    controller.fleet |= {"actions_waiting": [], "actions_paused": [held]}
    output = corral(controller, "status").output
    assert "paused a2 reboot_node of n1: automation is paused: freeze" in output
    assert "approve" not in output


def test_status_tells_a_hold_of_a_node_once(controller: Controller) -> None:
    hold = {"id": "h1", "subject": {"node": "n1"}, "owner": "maintenance", "reason": "new fans"}
    for each in controller.fleet["nodes"][0]["gpus"]:
        each["holds"] = [hold]
    output = corral(controller, "status").output
    assert output.count("h1") == 1
    assert "hold h1 on the node by maintenance: new fans" in output


def test_of_one_moment_explain_tells_the_cause_before_its_effect() -> None:
    hold = STORY[1]
    state = StateLine(at=hold.at, subject=hold.subject, from_="healthy", to="cordoned", why="held by policy")
    assert causal([state, hold]) == [hold, state]
    assert story(hold).startswith("1970-01-01 00:00:02.000Z ")


def test_only_what_a_person_can_approve_is_offered_for_approval(controller: Controller) -> None:
    drain = {"id": "a2", "of": "drain", "subject": {"replica": "chat-1"}, "why": "without it too few would serve"}
    controller.fleet["actions_waiting"] = [drain]
    output = corral(controller, "status").output
    assert "waiting a2 drain of chat-1: without it too few would serve" in output
    assert "approve" not in output


def test_status_says_why_a_deployment_is_short(controller: Controller) -> None:
    because = "1 starting, 1 to start: no GPU is free: 3 lost, 5 occupied"
    controller.fleet["deployments"][0]["short_because"] = because
    controller.fleet["actions_waiting"] = [{"id": "a2", "of": "start_replica", "why": "no GPU is free: 8 occupied"}]
    output = corral(controller, "status").output
    assert f"replicas ready: {because}" in output
    assert "8 occupied" not in output, "what it was when the start began to wait"


def test_status_shows_what_was_found_with_its_owner(controller: Controller) -> None:
    found = {"replica": "vllm.service:8000@n1", "state": "ready", "observed": True, "model": "llama"}
    controller.fleet["replicas"] = [found | {"owner": "systemd-unit vllm.service, uid 1000"}]
    output = corral(controller, "status").output
    assert "vllm.service:8000@n1 ready: llama by systemd-unit vllm.service, uid 1000" in output
    assert "Corral never signals it" in output


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([{"node": "n1", "virtual": False, "address": "http://n1"}], "no virtual node"),
        ([{"node": f"v{n}", "virtual": True, "address": f"http://v{n}"} for n in (1, 2)], "v2 at http://v2"),
    ],
)
def test_a_drill_never_goes_to_an_agent_that_is_not_of_the_fleet(
    controller: Controller, nodes: list[dict[str, Any]], said: str
) -> None:
    controller.nodes = nodes
    result = corral(controller, "drill", "xid", "79", "--gpu", "0")
    assert isinstance(result.exception, InputError)
    assert said in str(result.exception)


def test_an_incident_is_shown_by_a_beginning_that_no_other_has(controller: Controller) -> None:
    controller.incidents = [msgspec.structs.replace(GROWN, id=name) for name in ("i-12ab", "i-12cd", "i-3f00")]
    assert "xid:79 on n1/0: critical" in corral(controller, "incident", "show", "i-3").output
    several = corral(controller, "incident", "show", "i-1").exception
    assert isinstance(several, InputError)
    assert "2 incidents begin with 'i-1': i-12ab, i-12cd" in str(several)
    none = corral(controller, "incident", "show", "i-9").exception
    assert isinstance(none, Refused)
    assert "`corral incident list --all` lists them" in str(none)


def test_status_says_where_an_incident_is_how_old_and_which_repairs_run(controller: Controller) -> None:
    at = time.time() - 600
    incident = {"id": "i1", "code": "xid:79", "severity": "critical", "subject": {"gpu": GPU}, "state": "opened"}
    repair = {"id": "a2", "of": "reset_gpu", "subject": {"gpu": OTHER}, "state": "running", "why": "xid:48", "at": at}
    controller.fleet |= {"incidents_open": [incident | {"at": at}], "repairs_running": [repair]}
    output = corral(controller, "status").output
    assert "incident i1 xid:79 critical on n1/0, for 10 min" in output
    assert "repair a2 reset_gpu of n1/1 running, for 10 min: xid:48" in output


@pytest.mark.parametrize("words", [("status",), ("top", "--once")])
def test_what_a_gpu_was_last_is_not_told_as_what_it_is(controller: Controller, words: tuple[str, ...]) -> None:
    controller.fleet |= {"replicas": []}
    assert "100%" in corral(controller, *words).output
    for each in controller.fleet["nodes"][0]["gpus"]:
        each |= {"state": "unknown", "fresh": False}
    shown = corral(controller, *words).output
    assert "unknown" in shown
    assert "100%" not in shown


def test_status_says_since_when_an_incident_is_open_and_not_only_when_it_last_grew(controller: Controller) -> None:
    grown = {"id": "i1", "code": "xid:79", "severity": "critical", "state": "updated", "at": time.time() - 600}
    controller.fleet |= {"incidents_open": [grown], "incidents_began": {"i1": time.time() - 5 * 3600}}
    assert "incident i1 xid:79 critical, for 5 h, changed 10 min ago" in corral(controller, "status").output
    controller.fleet |= {"incidents_began": {}}  # a controller of the version before
    assert "incident i1 xid:79 critical, changed 10 min ago" in corral(controller, "status").output


def test_status_says_which_incident_is_left_to_a_person_and_why(controller: Controller) -> None:
    controller.fleet["incidents_open"] = [{"id": "i1", "code": "xid:94", "severity": "error"}]
    controller.fleet["halted"] = {"i1": "reset_gpu was refused: python3 (pid 7) has the GPU open"}
    output = " ".join(corral(controller, "status").output.split())
    assert "i1 xid:94 error goes no further by itself: reset_gpu was refused: python3 (pid 7)" in output
