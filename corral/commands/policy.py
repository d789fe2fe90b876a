"""``corral policy``: what Corral does for which fault, checked and compared before it is put in force."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from corral.ask import ask, ask_lines, json_option, url_option
from corral.preview import order
from corral.terminal import say
from vocab.errors import InputError, Refused, Unreachable

FOUND = 1  # exit code: there is a difference, or something does not act
file_argument = click.argument("file", type=click.Path(path_type=Path))
maybe_file_argument = click.argument("file", type=click.Path(path_type=Path), required=False)
reason_option = click.option("--reason", required=True, help="Why; it is shown in the history and kept in the audit.")


@click.group(help="The policy: the catalogue's rules, and what a policy file changes of them (docs/policy.md). In "
             "force is what was adopted, not what lies in a file.")  # fmt: skip
def command() -> None:
    """Policies."""


@command.command(help="Check a policy file without a controller: every error, by key and rule.")
@file_argument
def check(file: Path) -> None:
    """Print what the file is, or fail with all that is wrong in it."""
    from controller.core.policy import policyfile

    settings = policyfile.of(_read(file), str(file))
    for doubt in policyfile.doubts(settings):
        click.echo(f"{file}: warning: {doubt}", err=True)
    rules = len(settings.rules) + sum(len(pool.rules) for pool in settings.pools.values())
    say(f"{file}: version {settings.policy}, {_many(rules, 'rule')} and {_many(len(settings.pools), 'pool')}"
               " differ from what is built in")  # fmt: skip


@command.command(help="Compare a policy file with what is in force: rule by rule, and what the last 30 days of this "
                 "fleet would have led to. Without FILE: what adopting anew would change, as after an "
                 "upgrade.")  # fmt: skip
@maybe_file_argument
@url_option
@json_option
def diff(file: Path | None, url: str, as_json: bool) -> int:
    """Print the differences."""
    body = {"content": None if file is None else _read(file)}
    found = _compared(url, body)
    if as_json:
        say(msgspec.json.encode(found))
    else:
        _show_differences(found["differences"])
        say(_played(found))
        _show_decided(found["decided"])
    return FOUND if found["differences"] or _changed(found["decided"]) else 0


def _compared(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """The difference, once the controller has played the month; meanwhile how far it is, where somebody looks."""
    from rich.console import Console

    last: dict[str, Any] = {"told": "failed", "why": f"{url} broke off before the end; see its log"}
    with Console(stderr=True).status("asking the controller …") as status:

        def hear(told: dict[str, Any]) -> None:
            last.clear()
            last.update(told)
            if told["told"] == "progress":
                status.update(_so_far(told))

        ask_lines(url, "POST", "/api/v1/policy/diffs", body, hear)
    if last["told"] == "failed":
        raise Refused(f"there is no comparison: {last['why']}")
    if last["told"] != "diff":
        raise Unreachable(f"{url} broke off before the end; see its log")
    return last


def _so_far(told: dict[str, Any]) -> str:
    if told["at"] is None:
        return f"{_many(told['stored'], 'event')} of the last 30 days …"
    return f"played {told['events']} of {_many(told['stored'], 'event')}, up to {_when(told['at'])} …"


def _played(found: dict[str, Any]) -> str:
    """What the numbers rest on."""
    since = _when(found["since"])[:10]
    told = f"over the {_many(found['events'], 'event')} of this fleet since {since}"
    if found["first"] is not None:
        told += f" (the first at {_when(found['first'])})"
    return f"{told}, on nodes taken to be idle and at level repair, where each repair works:"


@command.command(help="Play recordings under two policies and print what they decide differently: that in force (if no "
                 "controller answers: the built-in one), and FILE (left out: the built-in one).")  # fmt: skip
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--policy", "file", type=click.Path(path_type=Path), help="The other policy.")
@url_option
@json_option
def test(recordings: tuple[Path, ...], file: Path | None, url: str, as_json: bool) -> int:
    """Print the differences."""
    from controller.core.policy import policyfile
    from corral.replay.compare import compare
    from corral.replay.told import as_text

    after = policyfile.of("" if file is None else _read(file), str(file))
    before = policyfile.of(_in_force(url))
    found = compare(recordings, before, after)
    if as_json:
        say(msgspec.json.encode({"before": before.policy, "after": after.policy, "found": found}))
        return FOUND if found.differs else 0
    say(f"{before.policy} -> {after.policy}")
    _show_decided([msgspec.to_builtins(count) for count in found.decided])
    lines = [("-", line) for line in found.gone] + [("+", line) for line in found.new]
    for sign, line in sorted(lines, key=lambda each: each[1].at):
        say(f"{sign} {as_text(line)}")
    return FOUND if found.differs else 0


def _in_force(url: str) -> str:
    """The file that is in force at the controller; nothing, and a word about it, if none answers."""
    try:
        (last,) = ask(url, "GET", "/api/v1/policy/adoptions", limit=1)
        return str(ask(url, "GET", f"/api/v1/policy/adoptions/{last['number']}")["content"])
    except Unreachable:
        click.echo("no controller answers: compared with the built-in policy", err=True)
        return ""


@command.command(help="Put a policy file in force. Without FILE: adopt anew what is in force, so that rules that an "
                 "upgrade changed, or that fell back to shadow, act again. For tokens of role admin.")  # fmt: skip
@maybe_file_argument
@reason_option
@url_option
@json_option
def adopt(file: Path | None, reason: str, url: str, as_json: bool) -> None:
    """Adopt it."""
    body = {"content": None if file is None else _read(file), "reason": reason}
    adopted = order(url, "POST", "/api/v1/policy/adoptions", body, as_json=as_json)
    if adopted is None:
        return
    say(f"adoption {adopted['number']}: version {adopted['version']} is in force")
    say("go back with: corral policy revert --reason …")


@command.command(help="Go back to an adoption by its number (left out: the one before the last), as it was then. Rules "
                 "that have changed since are in shadow. For tokens of role admin.")  # fmt: skip
@click.argument("number", type=click.IntRange(min=1), required=False)
@reason_option
@url_option
@json_option
def revert(number: int | None, reason: str, url: str, as_json: bool) -> None:
    """Revert."""
    body = {"number": number, "reason": reason}
    adopted = order(url, "POST", "/api/v1/policy/reverts", body, as_json=as_json)
    if adopted is None:
        return
    words = f"version {adopted['version']} is in force again, as in adoption {adopted['reverts']}"
    say(f"adoption {adopted['number']}: {words}")


@command.command(help="List what was adopted, by whom and why, the last one first.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 1000), help="At most this many.")
@url_option
@json_option
def history(limit: int, url: str, as_json: bool) -> None:
    """Print the adoptions."""
    for each in ask(url, "GET", "/api/v1/policy/adoptions", limit=limit):
        if as_json:
            say(msgspec.json.encode(each))
            continue
        back = f" (back to {each['reverts']})" if each.get("reverts") else ""
        say(f"{each['number']:4}  {_when(each['at'])}  {each['version']}{back}  {each['actor']}: {each['reason']}")


@command.command(help="Show the policy in force, the rules that do not act and why, and how often rules were right in "
                 "the eyes of people.")  # fmt: skip
@url_option
@json_option
def status(url: str, as_json: bool) -> int:
    """Print the policy."""
    policy = ask(url, "GET", "/api/v1/policy")
    if as_json:
        say(msgspec.json.encode(policy))
    else:
        _show_status(policy)
    return FOUND if policy["demoted"] or policy["shadowed"] else 0


def _show_status(policy: dict[str, Any]) -> None:
    adopted = policy["adopted"]
    told = f", adoption {adopted['number']} by {adopted['actor']}: {adopted['reason']}" if adopted else ""
    say(f"version {policy['version']}, level {policy['level']}{told}")
    if policy["unheeded"]:
        say(f"not in force: {policy['unheeded']}")
    for note in policy["demoted"]:
        say(f"in shadow: {note['text']}")
    for code, why in policy["shadowed"].items():
        say(f"in shadow: {code}: {why}")
    if policy["demoted"] or policy["shadowed"]:
        say("once you have looked, they act again with: corral policy adopt --reason …")
    for each in policy["precision"]:
        say(f"{each['rule']:24} {_many(each['holds'], 'hold')}, {each['would']} only said; {_record(each)}")


def _record(each: dict[str, Any]) -> str:
    if each["ratio"] is None:
        return "nobody has judged them"
    return (
        f"{each['right']} right and {each['wrong']} wrong: {each['ratio']:.0%}"
        f" (between {each['low']:.0%} and {each['high']:.0%})"
    )


def _show_differences(found: list[dict[str, Any]]) -> None:
    for each in found:
        say(f"{each['key']}: {each['before']}  ->  {each['after']}")
    if not found:
        say("the policies say the same")


def _show_decided(counts: list[dict[str, Any]]) -> None:
    """By rule: how many of what, and how many more or fewer."""
    for each in counts:
        more = each["after"] - each["before"]
        change = f"  ({more:+d})" if more else ""
        places = f": {', '.join(each['places'])}" if each["places"] else ""
        say(f"  {each['rule']:24} {each['of']:16} {each['before']:5} -> {each['after']:5}{change}{places}")
    if not counts:
        say("  nothing is decided by either")


def _changed(counts: list[dict[str, Any]]) -> bool:
    return any(each["before"] != each["after"] or each["places"] for each in counts)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8: {error.reason}") from error


def _when(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
