"""What holds for every command: help with an example and exit codes, JSON where there is a table, 80 columns, no colour
where nobody looks."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from aiohttp import web
from click.testing import CliRunner, Result

from corral.__main__ import COMMANDS, cli
from corral.manual import EXAMPLES, ONES
from corral.terminal import fit, say
from wire.server import reply

SAY_ONE_LINE = {"up", "enroll", "policy check", "record", "backup", "restore", "completion"}  # and no table
GPU = "GPU-aaaaaaaa-0000-0000-0000-000000000001"
NODE = "a-node-with-a-long-name.rack-12.hall-3.example.net"
LONG = "a reason that goes on for much longer than any terminal is wide, as people's and machines' reasons do"
EVENT = {
    "id": "e1", "rev": 1, "at": "2026-01-01T00:00:00.000000Z", "node": NODE, "gpu": GPU, "code": "collective_timeout",
    "severity": "critical", "recovery": "contact_support", "scope": "gpu", "source": "kernel", "text": LONG, "count": 7,
    "first_at": "2026-01-01T00:00:00.000000Z", "last_at": "2026-01-01T00:00:00.000000Z",
    "evidence": [{"source": "kmsg", "line": f"NVRM: {LONG}"}],
}  # fmt: skip
HOLD = {"kind": "hold", "at": 1.0, "subject": {"node": NODE}, "id": "h1", "op": "placed", "owner": "maintenance",
        "reason": LONG, "clears_on": "person", "until": 1.8e9}  # fmt: skip
INCIDENT = {"kind": "incident", "at": 1.0, "subject": {"gpu": GPU}, "id": "i-0123456789abcdef", "state": "open",
            "root": "e1", "code": "xid:79", "severity": "critical", "recovery": "reboot_node"}  # fmt: skip
ACTION = {"kind": "action", "at": 1.0, "subject": {"node": NODE}, "id": "a1", "of": "reboot_node", "state": "waiting",
          "token": "1.1", "rule": "xid:79", "policy": "p", "why": LONG, "incident": INCIDENT["id"]}  # fmt: skip
BOARD = {"uuid": GPU, "index": 0, "state": "cordoned", "holds": [HOLD], "replica": "a-deployment-with-a-long-name-1",
         "readings": {"utilization_ratio": 1.0, "sm_active_ratio": 0.01, "dram_active_ratio": 0.01}}  # fmt: skip
FLEET = {
    "nodes": [{"node": NODE, "virtual": True, "level": "repair", "state": "live", "gpus": [BOARD], "holds": [HOLD],
               "unknown_because": LONG}],
    "deployments": [{"name": "chat", "ready": 1, "wanted": 2, "min_ready": 1, "short_because": LONG}],
    "replicas": [{"replica": "a-deployment-with-a-long-name-1", "state": "ready", "gpus": [GPU], "running": 12}],
    "incidents_open": [INCIDENT], "actions_waiting": [ACTION], "halted": {INCIDENT["id"]: LONG}, "counts": {},
    "pauses": [{"scope": "fleet", "name": None, "why": LONG}], "seq": 1, "paused": True,
}  # fmt: skip
ADOPTED = {"number": 1, "at": 1.0, "version": "v1", "actor": "ada", "reason": LONG}
CARD = {
    "gpus": [{"board": "NVIDIA H100 80GB HBM3", "serial": "165202300123", "uuid": GPU}],
    "places": [{"since": 1.0, "until": None, "node": NODE, "pci": "0000:19:00", "uuid": GPU}],
    "faults": [{"events": 1, "code": "xid:79", "last": 1.0}], "holds": [HOLD], "repairs": [ACTION], "verdicts": [],
}  # fmt: skip
TOKEN = {"id": "t-0123456789abcdef", "name": "a-name-that-is-rather-long", "role": "operator", "node": NODE,
         "counts": True, "made_at": 1.0, "made_by": "somebody-else", "expires_at": 2.0}  # fmt: skip
ANSWERS: dict[str, Any] = {
    "fleet": FLEET,
    "nodes": FLEET["nodes"],
    "events": [EVENT],
    f"gpus/{GPU}/explain": [{"kind": "event", "at": 1.0, "subject": {"gpu": GPU}, "event": EVENT}, HOLD, ACTION],
    "incidents": [INCIDENT],
    f"incidents/{INCIDENT['id']}": {
        "incident": INCIDENT, "lines": [INCIDENT, ACTION], "place": f"{NODE}/0", "halted": LONG,
        "runbook": "/runbooks/X",
    },
    "actions": [ACTION],
    "audit": [{"at": 1.0, "actor": "ada", "act": "hold", "subject": f"node:{NODE}", "reason": LONG, "outcome": ""}],
    "maintenances": [HOLD],
    "lemons": [{"gpu": GPU, "board": "NVIDIA H100 80GB HBM3", "score": 4.2, "lemon": True, "signals": [
        {"signal": "holds", "value": 9, "mean": 0.1, "peers": 2000, "points": 2.0, "text": LONG}]}],
    "cards": [CARD], f"cards/{GPU}": CARD,
    "bundles": [{"id": "b-1", "of": INCIDENT["id"], "subject": GPU, "at": 1.0, "bytes": 1, "waits_for": [NODE]}],
    "tokens": [TOKEN],
    "versions": {"known_bad": [{"what": LONG, "count": 9, "nodes": [NODE] * 6, "remedy": LONG, "source": LONG}],
                 "parts": [{"pool": "p", "part": "driver", "board": None, "judged": True, "versions": [
                     {"version": "570.1", "usual": True, "count": 9, "nodes": [NODE] * 6},
                     {"version": "560.1", "usual": False, "count": 9, "nodes": [NODE] * 6}]}]},
    "policy": {"version": "v1", "level": "repair", "adopted": ADOPTED, "unheeded": LONG, "demoted": [{"text": LONG}],
               "shadowed": {"xid:48": LONG}, "precision": []},
    "policy/adoptions": [ADOPTED],
    "holds": HOLD, "drains": {"lines": [HOLD]}, "releases": {"lines": [HOLD]}, "undo": {"lines": [HOLD, ACTION]},
}  # fmt: skip
TABLES = [
    ("status",), ("top", "--once"), ("events",), ("explain", GPU), ("card", GPU), ("lemons",), ("versions",),
    ("incident", "list"), ("incident", "show", INCIDENT["id"]), ("handover",), ("maintain", "list"), ("plan", "list"),
    ("bundle", "--list"),
    ("token", "list"), ("policy", "history"), ("policy", "status"), ("hold", GPU, "--reason", "x"),
    ("drain", GPU, "--reason", "x"), ("undo", "--since", "1h"),
]  # fmt: skip


def everything() -> list[tuple[str, click.Command]]:
    """Every command that does something, by its path."""
    context = click.Context(cli)
    found: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        inner = command.commands.items() if isinstance(command, click.Group) else ()
        found += [(f"{name} {each}", made) for each, made in inner] or [(name, command)]
    return found


ALL = everything()


@pytest.mark.parametrize(("path", "command"), ALL, ids=[path for path, _ in ALL])
def test_help_has_an_example_and_exit_codes_and_fits_80_columns(path: str, command: click.Command) -> None:
    shown = CliRunner().invoke(cli, [*path.split(), "--help"], env={"COLUMNS": "80"}, terminal_width=80).output
    assert f"Example: {EXAMPLES[path][0]}" in shown or f"Example: {EXAMPLES[path][0]}" in " ".join(shown.split())
    assert "Exit codes: 0 done" in shown
    assert max(map(len, shown.splitlines())) <= 80
    as_json = any("--json" in option.opts for option in command.params)
    assert as_json != (path in SAY_ONE_LINE)


def test_the_table_of_the_manual_names_no_command_that_is_not() -> None:
    known = {path for path, _ in ALL}
    assert set(EXAMPLES) == known
    assert set(ONES) <= known


@pytest.fixture(scope="module")
def controller() -> Iterator[str]:
    """The address of one that answers with long words."""
    loop = asyncio.new_event_loop()

    async def answer(request: web.Request) -> web.Response:
        return reply(ANSWERS[request.path.removeprefix("/api/v1/")])

    async def start() -> tuple[web.AppRunner, str]:
        app = web.Application()
        app.router.add_route("*", "/api/{rest:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"

    runner, url = loop.run_until_complete(start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield url
    asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


def run(url: str, *words: str, columns: str | None = "80") -> Result:
    return CliRunner().invoke(cli, words, env={"CORRAL_URL": url, "COLUMNS": columns}, standalone_mode=False)


@pytest.mark.parametrize("words", TABLES, ids=" ".join)
def test_what_is_printed_fits_80_columns_without_colours(controller: str, words: tuple[str, ...]) -> None:
    result = run(controller, *words)
    assert result.exception is None, result.exception
    assert result.stdout.strip()
    assert [line for line in result.stdout.splitlines() if len(line) > 80] == []
    assert "\x1b" not in result.stdout


def test_a_fault_in_a_log_is_two_lines_of_80_columns_and_one_into_a_pipe(controller: str, tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_text(f"2026-06-01T15:55:06.218036+03:00 n kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=7, {LONG}\n")
    narrow = run(controller, "scan", str(log)).stdout.splitlines()
    assert [line.split()[0] for line in narrow] == ["TIME", "LINE", "2026-06-01", "a"]
    assert max(map(len, narrow)) <= 80
    assert len(run(controller, "scan", str(log), columns=None).stdout.splitlines()) == 2


def test_into_a_pipe_a_line_is_one_line(controller: str) -> None:
    assert f"    {LONG}" in run(controller, "events", columns=None).stdout


def test_fitting_loses_nothing() -> None:
    words = f"  {'x' * 200} {LONG}"
    assert "".join(fit(words, 40).split()) == "".join(words.split())
    assert fit(words, None) == words


def test_what_nodes_and_people_say_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say("xid:79 \x1b]52;c;cm0gLXJm\x07 \x9b2J fell off\tthe bus\nnext")
    assert capsys.readouterr().out == "xid:79  ]52;c;cm0gLXJm   2J fell off\tthe bus\nnext\n"
