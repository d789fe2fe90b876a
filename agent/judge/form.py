"""From a finding to an event: the catalogue's judgement, the identity, and the key under which repeats fold."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import msgspec

from agent.judge.fold import SEPARATOR
from agent.probes.probe import Finding
from agent.probes.scene import Scene
from vocab.catalogue.codes import row
from vocab.events import HISTORY, Event, Flag, Recovery, Scope, Severity, event_id, rfc3339

Read = Callable[[Finding], Any]
_OF_FINDING: dict[str, Read] = {
    "pid": lambda finding: finding.pid,
    "process": lambda finding: finding.process,
    "device": lambda finding: finding.device,
    "gi": lambda finding: finding.mig and finding.mig.gi,
    "ci": lambda finding: finding.mig and finding.mig.ci,
}
_ALWAYS_APART = ("replica", "source", "slot", "gi", "ci")  # one node or GPU has several of these


def discriminator(finding: Finding) -> str:
    """What tells this event from another of its code on the same subject."""
    fields = finding.fields
    parts = []
    for name, read in _apart(finding.code):
        value = fields.get(name) if read is None else read(finding)
        if value is not None:
            parts.append(f"{name}={value}")
    return ",".join(parts)


@lru_cache(maxsize=512)
def _apart(code: str) -> tuple[tuple[str, Read | None], ...]:
    """What tells events of a code apart, and how to read it; None: it is a field."""
    return tuple((name, _OF_FINDING.get(name)) for name in (*row(code).discriminator, *_ALWAYS_APART))


def _value(finding: Finding, name: str) -> Any:
    read = _OF_FINDING.get(name)
    return finding.fields.get(name) if read is None else read(finding)


def subject(finding: Finding, scene: Scene) -> str:
    """Whom the event is about: a GPU's UUID, else an address, else the node."""
    return finding.gpu or finding.pci or scene.node


def fold_key(finding: Finding, scene: Scene) -> str:
    """Equal for findings that belong into one fold. Injected ones never fold with real ones."""
    parts = (subject(finding, scene), finding.code, discriminator(finding), "injected" if finding.injected else "")
    return SEPARATOR.join([part.replace(SEPARATOR, " ") for part in parts])  # a line may hold any character


def is_partial(finding: Finding) -> bool:
    """Whether the finding lacks some of what tells events of its code apart, as further lines of a burst do."""
    return any(_value(finding, name) is None for name in row(finding.code).discriminator)


def agrees(partial: str, whole: str) -> bool:
    """Whether a partial finding's key says nothing else than an open fold's key, of the same process if of any."""
    *about, known, injected = partial.split(SEPARATOR)
    *about_other, all_, injected_other = whole.split(SEPARATOR)
    said, said_there = {*known.split(",")} - {""}, {*all_.split(",")}
    same_process = {part for part in said ^ said_there if part.startswith("pid=")} == set()
    return (about, injected) == (about_other, injected_other) and said <= said_there and same_process


def boot_of(finding: Finding, scene: Scene) -> str | None:
    """The boot that the finding is of."""
    return scene.earlier if finding.history else scene.boot_id


def form(finding: Finding, scene: Scene, growing: str | None = None) -> Event:
    """The finding as an event: more of the one with the id ``growing``, else the first revision of a new one."""
    known = row(finding.code)
    stamp = None if finding.at is None else rfc3339(finding.at)
    boot_id = boot_of(finding, scene)
    fields = dict(finding.fields)
    if finding.history:
        fields[HISTORY] = True
    if known.vendor is not None:
        fields.setdefault("vendor", known.vendor)
    return Event(
        id=growing or event_id(boot_id, subject(finding, scene), finding.code, _identity(finding), finding.first),
        at=stamp,
        node=scene.node,
        boot_id=boot_id,
        gpu=finding.gpu,
        mig=finding.mig,
        pci=finding.pci or _address(finding.gpu, scene),
        device=finding.device,
        code=finding.code,
        severity=finding.severity or known.severity,
        recovery=finding.recovery or known.recovery,
        scope=_scope(finding, known.scope),
        pid=finding.pid,
        process=finding.process,
        injected=finding.injected,
        drill=finding.drill,
        source=finding.source,
        seq=finding.seq,
        kernel_s=finding.kernel_s,
        count=finding.count,
        first_at=stamp,
        last_at=stamp,
        flags=tuple(sorted(set(finding.flags))),
        fields={name: value for name, value in fields.items() if value is not None or name in {"fatal", "link"}},
        text=finding.text,
        evidence=finding.evidence,
    )


def _scope(finding: Finding, usual: Scope) -> Scope:
    """How far it reaches: what names no GPU, or one that nobody knows, is of the node at least."""
    scope = finding.scope or usual
    nameless = scope is Scope.GPU and finding.gpu is None and finding.pci is None
    return Scope.NODE if nameless or Flag.LOOKUP_FAILED in finding.flags else scope


def _identity(finding: Finding) -> str:
    """What a program wrote is another event than what the kernel wrote in its place."""
    return f"{discriminator(finding)},injected" if finding.injected else discriminator(finding)


def _address(gpu: str | None, scene: Scene) -> str | None:
    if gpu is None:
        return None
    known = scene.gpus.get(gpu)
    return known.pci if known else next((pci for pci, uuid in scene.addresses.items() if uuid == gpu), None)


def as_it_stands(event: Event) -> Event:
    """The event as the catalogue judges its code where nothing explains it."""
    known = row(event.code)
    return msgspec.structs.replace(event, severity=known.severity, recovery=known.recovery)


def noted(event: Event, why: str) -> Event:
    """The event with a word on why it is judged as it is."""
    return msgspec.structs.replace(event, fields=event.fields | {"why": why})


def quiet(event: Event) -> Event:
    """The event as mere information: another fault explains it."""
    return msgspec.structs.replace(event, severity=Severity.INFO, recovery=Recovery.NONE)
