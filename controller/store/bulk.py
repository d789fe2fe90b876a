"""Many rows at once, as tuples: what SQLAlchemy makes of a dictionary for each row costs more than the row itself.

The SQL is SQLAlchemy's, compiled once for each table; the driver gets the values as they are.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy.engine import Dialect
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import Insert

_written: dict[tuple[str, str], str] = {}  # by dialect and table, of which each has one such statement


async def execute(
    connection: AsyncConnection, statement: Insert, columns: Sequence[str], rows: Iterable[tuple[Any, ...]]
) -> None:
    """Insert the rows, of which each has the values of ``columns`` in this order: texts, numbers, None."""
    given = [tuple(map(_plain, row)) if _has_nul(row) else row for row in rows]
    if given:
        await connection.exec_driver_sql(_sql(statement, connection.dialect, list(columns)), given)


def _sql(statement: Insert, dialect: Dialect, columns: list[str]) -> str:
    key = dialect.name, str(statement.table)
    if key not in _written:
        compiled = statement.compile(dialect=dialect, column_keys=columns)
        assert getattr(compiled, "positiontup", None) == columns, key
        _written[key] = str(compiled)
    return _written[key]


def _has_nul(row: tuple[Any, ...]) -> bool:
    """PostgreSQL has no place for it in a text (see ``tables.String``)."""
    return any("\0" in value for value in row if isinstance(value, str))


def _plain(value: Any) -> Any:
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value
