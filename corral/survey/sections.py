"""The report in words and tables, before it is Markdown or HTML. Pure; dates are UTC."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from corral.survey.report import Cost, Gpu, Missed, Survey, Usage
from vocab.activity import Doing

MOST_ROWS = 50
HIDDEN = (Doing.HUNG, Doing.LAUNCH_BOUND)  # utilization is full there
ORDER = ("compute-bound", "memory-bound", "launch-bound", "starved", "idle", "throttled", "hung", "unknown")


class Tile(msgspec.Struct, frozen=True):
    """One figure for who reads only the top. ``grave``: something is to be done."""

    figure: str
    words: str
    grave: bool = False


class Table(msgspec.Struct, frozen=True):
    """Columns and rows of text; ``left_out``: rows that are not shown."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left_out: int = 0


class Section(msgspec.Struct, frozen=True):
    """A heading, what it means, and a table; ``shares``: parts of a whole, by name."""

    title: str
    words: tuple[str, ...]
    table: Table | None = None
    shares: tuple[tuple[str, float], ...] = ()


def headline(survey: Survey) -> str:
    """The report in one sentence."""
    standing, missed = len(survey.standing), len(survey.missed)
    if not survey.faults and survey.usage is None:
        return "No fault of a GPU is in these logs."
    parts = [f"{many(standing, 'GPU')} should be out of service now" if standing else "no GPU has to leave service now"]
    if missed:
        parts.append(f"{many(missed, 'fault')} stood for over an hour, {span(sum(m.stood_s for m in survey.missed))}"
                     " in all")  # fmt: skip
    if bad := sum(1 for lemon in survey.lemons if lemon.lemon):
        parts.append(f"{many(bad, 'card')} {'is a lemon' if bad == 1 else 'are lemons'}")
    return "; ".join(parts) + "."


def scope(survey: Survey) -> str:
    """What was looked at."""
    when = "" if survey.since is None or survey.until is None else f", {day(survey.since)} to {day(survey.until)}"
    named = survey.gpus - survey.assumed_gpus
    logs = f"{survey.lines:,} lines of {many(survey.files, 'log')}" if survey.files else "no logs"
    metrics = f"; metrics of {many(survey.usage.gpus, 'GPU')}" if survey.usage else ""
    taken = f" ({named:,} named, {survey.assumed_gpus:,} taken to be there)" if survey.assumed_gpus else ""
    return f"{many(survey.nodes, 'node')}, {many(survey.gpus, 'GPU')}{taken}{when}: {logs}{metrics}."


def tiles(survey: Survey) -> tuple[Tile, ...]:
    """The figures of the top."""
    stood = sum(missed.stood_s for missed in survey.missed)
    made = [
        Tile(f"{len(survey.standing)}", "GPUs or nodes to take out now", bool(survey.standing)),
        Tile(f"{len(survey.missed)}", f"faults that stood over an hour, {hours(stood)} in all", bool(survey.missed)),
        Tile(f"{sum(1 for lemon in survey.lemons if lemon.lemon)}", "lemons by serial number"),
    ]
    if survey.cost is not None:
        share = survey.cost.held_gpu_s / survey.cost.fleet_gpu_s if survey.cost.fleet_gpu_s else 0.0
        made.append(Tile(f"{share:.3%}", "of all GPU hours that Corral would have held"))
    if survey.usage is not None:
        whole = sum(survey.usage.seconds.values())
        hidden = sum(survey.usage.seconds.get(word.value, 0.0) for word in HIDDEN)
        made.append(Tile(f"{hidden / whole if whole else 0.0:.0%}", "of GPU time at full utilization on an empty chip"))
    return tuple(made)


def sections(survey: Survey) -> Iterator[Section]:
    """The whole report, the most pressing first."""
    yield _standing(survey)
    yield _missed(survey)
    yield _lemons(survey)
    if survey.cost is not None:
        yield _cost(survey.cost)
    if survey.usage is not None:
        yield from _usage(survey.usage)
    if survey.faults:
        yield _faults(survey)
    yield _how(survey)


def _standing(survey: Survey) -> Section:
    rows = [
        (_who(each.gpu, each.node), f"{each.code}: {each.title}", plain(each.recovery), when(each.since),
         span(max(0.0, survey.made_at - each.since)))
        for each in survey.standing
    ]  # fmt: skip
    words = (("Faults that ask for a repair, on nodes that have not booted since. A reset of one GPU leaves no line in"
             " a kernel log: where one was made, the row is history."),) if rows else ("None.",)  # fmt: skip
    columns = ("GPU", "fault", "what it needs", "since", "for")
    return Section("Should be out of service now", words, _table(columns, rows))


def _missed(survey: Survey) -> Section:
    by_place: dict[str, list[Missed]] = {}
    for each in survey.missed:
        by_place.setdefault(_who(each.gpu, each.node), []).append(each)
    rows = [
        (who, _faults_of(found), when(min(each.since for each in found)), span(sum(each.stood_s for each in found)),
         "it stands" if any(each.ended_by is None for each in found) else f"by {found[-1].ended_by}")
        for who, found in by_place.items()
    ]  # fmt: skip
    words = "Faults that stood for over an hour: the log asked for a repair, and work went on."
    words = words if rows else "No fault stood for over an hour."
    return Section("Missed", (words,), _table(("GPU", "faults", "first", "stood, in all", "how it ended"), rows))


def _faults_of(found: Sequence[Missed]) -> str:
    """One in full; several by their codes."""
    if len(found) == 1:
        return f"{found[0].code}: {found[0].title}"
    counts = Counter(each.code for each in found)
    return ", ".join(f"{code} ({count} times)" if count > 1 else code for code, count in counts.most_common())


def _lemons(survey: Survey) -> Section:
    rows = [
        (each.gpu.name, each.gpu.place, "lemon" if each.lemon else "stands out", f"{each.score:g}",
         "; ".join(each.signals))
        for each in survey.lemons
    ]  # fmt: skip
    words = (("Cards that fail far more often than the others of their board in 28 days, by serial number: they keep"
             " their history when they move."),) if rows else ("No card stands out.",)  # fmt: skip
    return Section("Lemons", words, _table(("card", "where it was last", "", "score", "why"), rows))


def _cost(cost: Cost) -> Section:
    share = cost.held_gpu_s / cost.fleet_gpu_s if cost.fleet_gpu_s else 0.0
    repairs = ", ".join(f"{count} × {plain(kind)}" for kind, count in cost.repairs.items()) or "no repair"
    words = [
        (
            "At level *repair*, with the built-in policy and its budgets, Corral would have placed"
            f" {many(cost.holds, 'hold')}"
            f" ({repairs}; {many(cost.quarantined, 'quarantine')}), at most {many(cost.most_at_once, 'GPU')} at once:"
            f" {hours(cost.held_gpu_s)} of GPU time, {share:.3%} of the fleet's."
        ),
        f"In fact GPUs with such faults were in service for {hours(cost.served_faulty_s)}.",
    ]
    if cost.waited:
        words.append(f"{many(cost.waited, 'hold')} would have waited for a budget.")
    words.append("Each repair is taken to work, on nodes that are taken to be idle; drains are not in these figures.")
    rows = [(rule, f"{count:,}") for rule, count in cost.rules.items()]
    return Section("What Corral would have done", tuple(words), _table(("rule", "holds"), rows))


def _usage(usage: Usage) -> Iterator[Section]:
    whole = sum(usage.seconds.values()) or 1.0
    shares = tuple((word, usage.seconds[word] / whole) for word in ORDER if usage.seconds.get(word))
    words = [(f"{many(usage.gpus, 'GPU')}, averages over {span(usage.step_s)}. *Utilization* only says that some kernel"
             " was resident; the word says what the chip did meanwhile.")]  # fmt: skip
    if usage.unknown:
        words.append(f"Of {many(usage.unknown, 'GPU')} no activity is known: dcgm-exporter must collect the"
                     " DCGM_FI_PROF fields.")  # fmt: skip
    yield Section("How GPUs spent their time", tuple(words), None, shares)
    rows = [
        (_who(each.gpu, each.gpu.node), f"{each.word} {each.share:.0%} of the time", f"{each.utilization:.0%}",
         "–" if each.sm_active is None else f"{each.sm_active:.0%}",
         hours(sum(each.seconds.get(word.value, 0.0) for word in HIDDEN)), hours(each.seconds.get("starved", 0.0)),
         hours(each.seconds.get("idle", 0.0)))
        for each in usage.worst
    ]  # fmt: skip
    columns = ("GPU", "mostly", "utilization", "SM active", "full but empty", "starved", "idle")
    yield Section("Idle, or starved at full utilization", ("The GPUs that lost most, hidden losses first.",),
                  _table(columns, rows))  # fmt: skip
    if usage.engines:
        made = [(each.engine, each.model, f"{each.empty:.0%}", f"{each.waiting:.0%}", f"{each.kv_full:.0%}")
                for each in sorted(usage.engines, key=lambda each: (-each.empty, each.engine))]  # fmt: skip
        yield Section("Engines", ("Shares of each engine's time.",),
                      _table(("engine", "model", "no request", "requests queued", "cache full"), made))  # fmt: skip


def _faults(survey: Survey) -> Section:
    rows = [
        (each.code, each.title, each.severity, plain(each.recovery), f"{each.events:,}", f"{each.gpus:,}",
         f"{each.nodes:,}", "yes" if each.asks else "")
        for each in survey.faults
    ]  # fmt: skip
    columns = ("code", "what it is", "worst", "advice", "times", "GPUs", "nodes", "taken out")
    return Section("All that was seen", (), _table(columns, rows))


def _how(survey: Survey) -> Section:
    words = [("Kernel lines went through the judge of Corral's agent and its events through the core of its controller;"
             " nothing was changed anywhere.")]  # fmt: skip
    if survey.assumed_gpus:
        words.append(f"{many(survey.assumed_gpus, 'GPU')} that nothing names are taken to be there, for a budget counts"
                     " all: --gpus-per-node.")  # fmt: skip
    if survey.unparsed:
        words.append(f"{many(survey.unparsed, 'line')} claimed to be an Xid and could not be parsed.")
    words += [f"Not read: {why}." for why in survey.unread]
    return Section("How this was made", tuple(words))


def _table(columns: Sequence[str], rows: Sequence[tuple[str, ...]]) -> Table | None:
    if not rows:
        return None
    return Table(tuple(columns), tuple(rows[:MOST_ROWS]), max(0, len(rows) - MOST_ROWS))


def _who(gpu: Gpu | None, node: str) -> str:
    if gpu is None:
        return f"{node} (the node)"
    is_named = gpu.name != f"{gpu.node}/{gpu.pci}"  # else its name is only where it is
    return f"{gpu.place} ({gpu.name})" if is_named else gpu.place


def plain(word: str) -> str:
    """A word of the API as people write it."""
    return word.replace("_", " ").replace("gpu", "GPU")


def many(count: int, noun: str) -> str:
    """The count and its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def hours(seconds: float) -> str:
    """GPU time."""
    return f"{seconds / 3600:,.0f} h" if seconds >= 36_000 else f"{seconds / 3600:.1f} h"


def span(seconds: float) -> str:
    """A duration in the two units that matter."""
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"
    return f"{minutes / 1440:.1f} days"


def when(at: float) -> str:
    """A moment, to the minute."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def day(at: float) -> str:
    """A day."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
