"""The report as one page that needs nothing else: no script, no font, no address; light and dark, and for printing."""

from collections.abc import Iterator
from html import escape
from importlib.resources import files

from corral.survey.report import Survey
from corral.survey.sections import Section, Table, headline, scope, sections, tiles, when


def page(survey: Survey) -> str:
    """The whole report."""
    return "".join(_parts(survey))


def _parts(survey: Survey) -> Iterator[str]:
    style = files("corral.survey").joinpath("page.css").read_text(encoding="utf-8")
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>GPU survey</title>\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme"'
    yield f' content="light dark">\n<style>\n{style}</style></head>\n<body><header>\n<p class="name">GPU survey</p>\n'
    yield f"<h1>{escape(headline(survey))}</h1>\n<p>{escape(scope(survey))} Made {when(survey.made_at)} UTC.</p>\n"
    yield '</header><main>\n<ul class="tiles">\n'
    for tile in tiles(survey):
        grave = ' class="grave"' if tile.grave else ""
        yield f"<li{grave}><strong>{escape(tile.figure)}</strong> {escape(tile.words)}</li>\n"
    yield "</ul>\n"
    for section in sections(survey):
        yield from _section(section)
    yield "</main></body></html>\n"


def _section(section: Section) -> Iterator[str]:
    yield f"<section><h2>{escape(section.title)}</h2>\n"
    yield from (f"<p>{_emphasis(words)}</p>\n" for words in section.words)
    if section.shares:
        yield from _bar(section.shares)
    if section.table is not None:
        yield from _table(section.table)
    yield "</section>\n"


def _bar(shares: tuple[tuple[str, float], ...]) -> Iterator[str]:
    """Parts of a whole: lengths for the eye, words and figures for everybody."""
    yield '<div class="bar" aria-hidden="true">'
    yield from (f'<i class="{name}" style="flex-grow:{share:.4f}"></i>' for name, share in shares)
    yield '</div>\n<ul class="legend">'
    yield from (f'<li><i class="{name}"></i>{escape(name)} <b>{share:.1%}</b></li>' for name, share in shares)
    yield "</ul>\n"


def _table(table: Table) -> Iterator[str]:
    yield '<div class="wide" tabindex="0"><table><thead><tr>'
    yield "".join(f'<th scope="col">{escape(column)}</th>' for column in table.columns)
    yield "</tr></thead><tbody>\n"
    for first, *rest in table.rows:
        yield f'<tr><th scope="row">{escape(first)}</th>' + "".join(f"<td>{escape(cell)}</td>" for cell in rest)
        yield "</tr>\n"
    yield "</tbody></table></div>\n"
    if table.left_out:
        yield f"<p>{table.left_out:,} more; the JSON form has all.</p>\n"


def _emphasis(words: str) -> str:
    """Words between asterisks stand out."""
    parts = escape(words).split("*")
    return "".join(f"<em>{part}</em>" if place % 2 else part for place, part in enumerate(parts))
