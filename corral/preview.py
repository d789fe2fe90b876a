"""``--dry-run`` of every command that harms: what the order would lead to, told by the controller and not done."""

from typing import Any

import click
import msgspec

from corral.ask import ask
from corral.terminal import say
from vocab.lines import Target

dry_run_option = click.option("--dry-run", is_flag=True, help="Only say what it would do: who goes where, how long.")


def order(
    url: str, method: str, path: str, body: dict[str, Any], *, dry_run: bool = False, as_json: bool = False
) -> Any:
    """Give the order and return the answer; None where all is said: on a dry run, which prints what it would lead to,
    and as JSON, which is the answer itself.
    """
    answer = ask(url, method, path, body=body, **({"dry_run": 1} if dry_run else {}))
    if as_json:
        say(msgspec.json.encode(answer))
        return None
    if not dry_run:
        return answer
    for line in told(answer):
        say(line)
    return None


def told(seen: dict[str, Any]) -> list[str]:
    """A preview, line by line."""
    groups: dict[str, list[str]] = seen.get("groups", {})
    places: dict[str, str] = seen.get("places", {})
    refused = seen.get("refused")
    asks = "it asks for" if refused else "would order"
    lines = [f"would hold {_name(hold['subject'], places)}: {hold['reason']}" for hold in seen.get("held", ())]
    lines += [f"would lift {hold['id']} on {_name(hold['subject'], places)}" for hold in seen.get("lifted", ())]
    lines += [f"{asks} {each['of']} of {_name(each['subject'], places)}" for each in seen.get("ordered", ())]
    lines += [f"  which stops {_name(subject, places)}" for subject in seen.get("disrupts", ())]
    lines += [_move(move, places) for move in seen.get("moves", ())]
    lines += [f"  {name} is a group: all of it leaves {' and '.join(nodes)} together" for name, nodes in groups.items()]
    lines += [f"{replica} would serve on" for replica in seen.get("stays", ())]
    lines += [f"would call off {each['of']} of {_name(each['subject'], places)}" for each in seen.get("cancelled", ())]
    lines += [_floor(floor) for floor in seen.get("floors", ())]
    lines += [
        f"budget: {each['used']:g} of {each['limit']:g} {each['of']} after this" for each in seen.get("budgets", ())
    ]
    lines += [f"cannot undo {text}" for text in seen.get("not_undone", ())]
    if refused:
        return [f"dry run: it would be refused: {refused}", *lines]
    if not lines:
        return ["dry run: nothing would change"]
    requests, longest = seen.get("requests", 0), seen.get("longest_s", 0.0)
    end = f"; {_requests(requests)} {'is' if requests == 1 else 'are'} in flight there" if requests else ""
    waits = "" if all(move.get("at_once", True) for move in seen.get("moves", ())) else ", once nothing is waited for"
    takes = f"; it takes {longest:g} s at most{waits}" if longest else ""
    return [*lines, f"dry run, nothing was done{takes}{end}"]


def _move(move: dict[str, Any], places: dict[str, str]) -> str:
    where, to = move["where"], move.get("to")
    usual = f" (starts took {move['start_s']:.0f} s)" if move.get("start_s") is not None else ""
    goes = f"to {_place(to, places)}{usual}" if to else f"and its replacement waits: {move['waits']}"
    flight = f", {_requests(move['requests'])} in flight" if move["requests"] else ""
    once = "" if move.get("at_once", True) else " once that is ready" if to else " once it can be spared"
    gone = f"gone within {move['drain_s']:g} s{once}"
    return f"would move {move['replica']} from {_place(where, places)} {goes}{flight}, {gone}"


def _requests(number: int) -> str:
    return "1 request" if number == 1 else f"{number} requests"


def _place(target: dict[str, Any], places: dict[str, str]) -> str:
    by_node = msgspec.convert(target, Target).by_node
    return " and ".join(
        ", ".join(map(places.__getitem__, gpus)) if places.keys() >= set(gpus) else f"{node} {', '.join(gpus)}"
        for node, gpus in by_node.items()
    )


def _floor(floor: dict[str, Any]) -> str:
    under = " — under its floor" if floor["without"] < floor["min_ready"] else ""
    return (
        f"{floor['deployment']}: {floor['ready']} ready, {floor['without']} without these before any replacement,"
        f" floor {floor['min_ready']}{under}"
    )


def _name(subject: dict[str, Any], places: dict[str, str]) -> str:
    """A GPU as NODE/INDEX, as other commands take it; anything else by its name."""
    name = next((str(value) for value in subject.values() if value), "the fleet")
    return places.get(name, name)
