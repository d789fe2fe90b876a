"""The survey itself: logs in, studied by as many processes as there are cores; the whole judged; a report out."""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import msgspec

from corral.survey import ssh
from corral.survey.fleet import Fleet
from corral.survey.judgement import Judgement, imagine
from corral.survey.logs import Log, logs
from corral.survey.metrics import Metrics, used
from corral.survey.report import Survey
from corral.survey.study import Finding, decoded, study
from vocab.errors import InputError
from vocab.events import epoch_s
from vocab.states import Level

Tell = Callable[[str, int, int], None]  # what is done, how many of how many


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be surveyed. ``days``: of what hosts and Prometheus are asked for."""

    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    prometheus: str | None = None
    days: float = 30.0
    tz: str | None = None
    gpus_per_node: int = 8
    jobs: int = 0
    ssh: str = "ssh"


def survey(wish: Wish, tell: Tell, *, now: float | None = None) -> Survey:
    """Read, judge, report. Raises InputError if there is nothing to read, Unreachable if Prometheus does not answer."""
    now = time.time() if now is None else now
    unread: list[str] = []
    metrics = None if wish.prometheus is None else asyncio.run(used(wish.prometheus, now, wish.days, tell))
    with tempfile.TemporaryDirectory(prefix="corral-survey-") as folder, _pool(wish.jobs) as pool:
        paths = list(wish.paths)
        if wish.hosts:
            unread += _fetched(wish, Path(folder), tell)
            paths += [folder] if any(Path(folder).iterdir()) else []
        if not paths and metrics is None:
            raise InputError("; ".join(unread) or "nothing to read: name files or folders, --ssh or --prometheus")
        found = list(_studied(pool, logs(paths) if paths else [], wish.tz, now, tell))
        if metrics is None and not any(finding.nodes for finding in found):
            raise InputError(_nothing([*unread, *(finding.broken for finding in found if finding.broken is not None)]))
        return _judged(pool, wish, found, unread, metrics, now, tell)


def _nothing(unread: Sequence[str]) -> str:
    """Why no log of a kernel could be read, of which nobody may take an all-clear."""
    more = f"; and {len(unread) - 3} more" if len(unread) > 3 else ""
    return "; ".join(unread[:3]) + more if unread else "there is no line in these logs"


def _fetched(wish: Wish, folder: Path, tell: Tell) -> list[str]:
    done = 0

    def one(_: str) -> None:
        nonlocal done
        done += 1
        tell("logs fetched", done, len(wish.hosts))

    return asyncio.run(ssh.fetch(wish.hosts, folder, wish.days, one, ssh=wish.ssh))


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    cores = len(os.sched_getaffinity(0))
    pool = ProcessPoolExecutor(jobs or cores, mp_context=get_context("forkserver"))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _studied(
    pool: ProcessPoolExecutor, found: Sequence[Log], tz: str | None, now: float, tell: Tell
) -> Iterator[Finding]:
    """The findings in the order of the logs. The largest logs are begun first, so that no core waits for one."""
    waiting = {pool.submit(study, log, tz, now): place for place, log in sorted(enumerate(found), key=_largest)}
    done: list[Finding | None] = [None] * len(found)
    for count, future in enumerate(as_completed(waiting), 1):
        done[waiting[future]] = decoded(future.result())
        tell("logs read", count, len(found))
    yield from (finding for finding in done if finding is not None)


def _largest(numbered: tuple[int, Log]) -> int:
    return -sum(Path(path).stat().st_size if Path(path).exists() else 0 for path in numbered[1].paths)


def _judged(
    pool: ProcessPoolExecutor,
    wish: Wish,
    found: Sequence[Finding],
    unread: list[str],
    metrics: Metrics | None,
    now: float,
    tell: Tell,
) -> Survey:
    boards, boots = (metrics.boards, metrics.boots) if metrics else ((), {})
    fleet = Fleet(found, boards, wish.gpus_per_node, boots)
    xids, standing = (metrics.xids, metrics.events) if metrics else ((), ())
    said = [*fleet.said(xids), *((now, event) for event in standing)]
    facts = fleet.facts()
    times = [now, *(epoch_s(event.at) for event in xids if event.at)] if xids or standing else []
    times += [at for finding in found for at in (finding.first, finding.last) if at is not None]
    since, until = (min(times), max(times)) if times else (None, None)
    judgement = None
    if said and until is not None:
        tell("judged", 0, 2)
        plays = [pool.submit(imagine, level, facts, said) for level in (Level.OBSERVE, Level.REPAIR)]
        real, repaired = (play.result() for play in plays)
        judgement = Judgement(fleet, said, real, repaired, until, now)
        tell("judged", 2, 2)
    gpus = len(fleet.gpus) + fleet.assumed
    return Survey(
        made_at=now,
        since=since,
        until=until,
        nodes=fleet.nodes,
        gpus=gpus,
        assumed_gpus=fleet.assumed,
        files=sum(1 for finding in found if finding.nodes or finding.broken is None),
        lines=sum(finding.lines for finding in found),
        unparsed=sum(finding.unparsed for finding in found),
        unread=(*unread, *(finding.broken for finding in found if finding.broken is not None)),
        standing=judgement.standing() if judgement else (),
        missed=judgement.missed() if judgement else (),
        lemons=judgement.lemons() if judgement else (),
        faults=judgement.faults() if judgement else (),
        cost=judgement.cost(gpus, since or 0.0) if judgement else None,
        usage=metrics.usage if metrics else None,
    )
