"""The report as Markdown."""

from collections.abc import Iterator

from corral.survey.report import Survey
from corral.survey.sections import Section, headline, scope, sections, when


def markdown(survey: Survey) -> str:
    """The whole report."""
    return "\n".join(_lines(survey)) + "\n"


def _lines(survey: Survey) -> Iterator[str]:
    yield from ("# GPU survey", "", f"**{headline(survey)}**", "", scope(survey), f"Made {when(survey.made_at)} UTC.")
    for section in sections(survey):
        yield from _section(section)


def _section(section: Section) -> Iterator[str]:
    yield from ("", f"## {section.title}")
    if section.words:
        yield from ("", " ".join(section.words))
    if section.shares:
        yield ""
        yield from (f"- {name}: {share:.1%}" for name, share in section.shares)
    if section.table is not None:
        yield ""
        yield _row(section.table.columns)
        yield _row(tuple("---" for _ in section.table.columns))
        yield from map(_row, section.table.rows)
        if section.table.left_out:
            yield from ("", f"{section.table.left_out:,} more; --format json has all.")


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _cell(text: str) -> str:
    """A log may hold any character: none may end a cell, or be a tag."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return shown.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'")
