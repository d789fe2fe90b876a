"""Rows as tuples: what SQLAlchemy makes of a statement and of a dictionary for each row costs more than the row itself.

The SQL is SQLAlchemy's, compiled once for each table; the driver gets the values as they are. SQLite takes many rows
in one statement: the driver gives up the interpreter's lock at each, and has to win it back.
"""

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from sqlalchemy import Table
from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import Insert

SIZES = (500, 50, 10, 4, 2, 1)  # rows of one statement, for SQLite: few sizes, so that the driver keeps them prepared

Columns = tuple[str, ...]
_written: dict[tuple[str, str, Columns], str] = {}  # by dialect, table and columns: each has one such statement
_many: dict[tuple[str, int], str] = {}  # the same, of so many rows


async def execute(
    connection: AsyncConnection,
    table: Table,
    columns: Columns,
    statement: Callable[[], Insert],
    rows: Iterable[tuple[Any, ...]],
) -> None:
    """Insert the rows, of which each has the values of ``columns`` in this order: texts, numbers, None.

    ``statement`` makes the INSERT of this table and these columns, the first time that it is needed.
    """
    given = list(rows)
    if _has_nul(given):
        given = [tuple(map(_plain, row)) for row in given]
    sql = _sql(connection.dialect, table, columns, statement)
    if given and connection.dialect.name != "sqlite":
        await connection.exec_driver_sql(sql, given)
        return
    at = 0
    for size in SIZES:
        while len(given) - at >= size:
            values = tuple(chain.from_iterable(given[at : at + size]))
            await connection.exec_driver_sql(_of_many(sql, len(columns), size), values)
            at += size


def _sql(dialect: Dialect, table: Table, columns: Columns, statement: Callable[[], Insert]) -> str:
    key = dialect.name, table.name, columns
    if key not in _written:
        compiled = statement().compile(dialect=dialect, column_keys=list(columns))
        assert getattr(compiled, "positiontup", None) == list(columns), key
        _written[key] = str(compiled)
    return _written[key]


def _of_many(sql: str, columns: int, rows: int) -> str:
    key = sql, rows
    if key not in _many:
        one = f"({', '.join('?' * columns)})"
        head, values, tail = sql.partition(f"VALUES {one}")
        assert values, sql
        _many[key] = f"{head}VALUES {', '.join([one] * rows)}{tail}"
    return _many[key]


def _has_nul(rows: Iterable[tuple[Any, ...]]) -> bool:
    """PostgreSQL has no place for it in a text (see ``tables.String``)."""
    return "\0" in "".join([value for row in rows for value in row if value.__class__ is str])


def _plain(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
