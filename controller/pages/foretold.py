"""What an order would lead to, line by line, for the page that asks whether it is meant."""

from controller.core.preview import Floor, Move, Preview
from controller.pages.words import Names, plain
from vocab.lines import Target


def foretold(seen: Preview, names: Names) -> list[str]:
    """A preview in sentences; empty if nothing would change."""
    lines = [f"Holds {names.of(hold.subject)}: {hold.reason}" for hold in seen.held]
    lines += [f"Lifts the hold {hold.id} on {names.of(hold.subject)}" for hold in seen.lifted]
    orders = "It asks for" if seen.refused else "Orders"
    lines += [f"{orders} {plain(each.of)} of {names.of(each.subject)}" for each in seen.ordered]
    lines += [f"Stops {names.of(subject)}" for subject in seen.disrupts]
    lines += [_move(move, names) for move in seen.moves]
    lines += [f"{name} is a group: all of it leaves {' and '.join(at)} together" for name, at in seen.groups.items()]
    lines += [f"{replica} serves on" for replica in seen.stays]
    lines += [f"Calls off {plain(each.of)} of {names.of(each.subject)}" for each in seen.cancelled]
    lines += [_floor(floor) for floor in seen.floors]
    lines += [f"Budget: {each.used:g} of {each.limit:g} {each.of} after this" for each in seen.budgets]
    lines += [f"Cannot be undone: {text}" for text in seen.not_undone]
    if seen.requests:
        lines.append(f"{_requests(seen.requests)} {'is' if seen.requests == 1 else 'are'} in flight there")
    if seen.longest_s:
        lines.append(f"It takes {seen.longest_s:g} s at most, if nothing has to be waited for")
    return lines


def _move(move: Move, names: Names) -> str:
    usual = f" (starts took {move.start_s:.0f} s)" if move.start_s is not None else ""
    goes = f"to {_place(move.to, names)}{usual}" if move.to else f"and its replacement waits: {move.waits}"
    flight = f", {_requests(move.requests)} in flight" if move.requests else ""
    once = "" if move.at_once else " once that is ready" if move.to else " once it can be spared"
    return f"Moves {move.replica} from {_place(move.where, names)} {goes}{flight}, gone within {move.drain_s:g} s{once}"


def _requests(number: int) -> str:
    return "1 request" if number == 1 else f"{number} requests"


def _place(target: Target, names: Names) -> str:
    there = ((node, ", ".join(map(names.gpu, gpus))) for node, gpus in target.by_node.items())
    return " and ".join(f"{node} {gpus}" for node, gpus in there)


def _floor(floor: Floor) -> str:
    under = ": under its floor" if floor.without < floor.min_ready else ""
    return (
        f"{floor.deployment}: {floor.ready} ready, {floor.without} without these before any replacement,"
        f" floor {floor.min_ready}{under}"
    )
