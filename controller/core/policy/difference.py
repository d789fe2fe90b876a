"""Two policies side by side, in words: levels, limits, and each rule that differs."""

from collections.abc import Iterator, Mapping

import msgspec

from controller.core.fleet.ladder import needs_repair
from controller.core.fleet.settings import Pool, Rule, Settings
from vocab.catalogue.row import CodeRow


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A key of the policy file, and what it stands for before and after."""

    key: str
    before: str
    after: str


def differences(before: Settings, after: Settings, rows: Mapping[str, CodeRow]) -> tuple[Difference, ...]:
    """All that differs, in the order of the file: level, limits, rules, pools."""
    return tuple(each for each in _all(before, after, rows) if each.before != each.after)


def _all(before: Settings, after: Settings, rows: Mapping[str, CodeRow]) -> Iterator[Difference]:
    yield Difference(key="level", before=before.level.value, after=after.level.value)
    yield from _limits(before, after, None)
    for code in sorted({*before.rules, *after.rules, *before.unadopted, *after.unadopted}):
        yield _rule(f'rules."{code}"', code, before, after, rows, None)
    for pool in sorted(before.pools.keys() | after.pools.keys()):
        yield from _pool(pool, before, after, rows)


def _pool(name: str, before: Settings, after: Settings, rows: Mapping[str, CodeRow]) -> Iterator[Difference]:
    one, other = before.pools.get(name, Pool()), after.pools.get(name, Pool())
    levels = [str(pool.level or "as the fleet") for pool in (one, other)]
    yield Difference(key=f"pools.{name}.level", before=levels[0], after=levels[1])
    yield from _limits(before, after, name) if one.limits != other.limits else ()
    for code in sorted(one.rules.keys() | other.rules.keys()):
        yield _rule(f'pools.{name}.rules."{code}"', code, before, after, rows, name)


def _limits(before: Settings, after: Settings, pool: str | None) -> Iterator[Difference]:
    one, other = before.limits_of(pool), after.limits_of(pool)
    prefix = "" if pool is None else f"pools.{pool}."
    for name in one.__struct_fields__:
        yield Difference(
            key=f"{prefix}limits.{name}", before=f"{getattr(one, name):g}", after=f"{getattr(other, name):g}"
        )


def _rule(
    key: str, code: str, before: Settings, after: Settings, rows: Mapping[str, CodeRow], pool: str | None
) -> Difference:
    row = rows.get(code)
    one, other = (None if row is None else settings.row(row) for settings in (before, after))
    return Difference(key=key, before=_words(code, before, one, pool), after=_words(code, after, other, pool))


def _words(code: str, settings: Settings, row: CodeRow | None, pool: str | None) -> str:
    """What is done for a code: ``error, reset_gpu: holds``, with level, boards and shadow if there are any."""
    common = settings.rules.get(code, Rule())
    rule = common if pool is None else settings.pools.get(pool, Pool()).rules.get(code, Rule())
    severity = rule.severity or common.severity or (row.severity if row else None)
    recovery = rule.recovery or common.recovery or (row.recovery if row else None)
    words = f"{severity or 'as seen'}, {recovery or 'as seen'}"
    if row is not None and severity is not None and recovery is not None and row.condition and not row.blocks:
        words += ": holds" if needs_repair(severity, recovery) else ": no hold"
    kept = settings.kept.get(code)
    words += ", each weighed as adopted" if kept is not None and kept.then.table != kept.now.table else ""
    words += f", at most {rule.level}" if rule.level else ""
    words += f", on {' '.join(rule.models)}" if rule.models else ""
    shadow = settings.shadowed.get(code) or ("the policy says so" if rule.shadow or common.shadow else None)
    return f"{words}; in shadow: {shadow}" if shadow else words
