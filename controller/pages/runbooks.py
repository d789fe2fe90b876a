"""The runbooks as pages: what an incident's code means, and what to do about it."""

import re
from pathlib import Path

from aiohttp import web
from markdown_it import MarkdownIt
from markupsafe import Markup

from controller.pages.frame import Frame
from vocab.catalogue import codes
from vocab.catalogue.brief import brief, is_code, needs_nothing
from vocab.runbooks import runbook

FOLDER = Path(__file__).parents[2] / "alerts" / "runbooks"  # text that ships beside this package
INDEX = "README"
_COMMENT = re.compile(r"^<!--.*-->\n", re.MULTILINE)  # for the program that writes their heads


class Runbooks:
    """Renders them. They are read once; nothing outside of their folder can be reached."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._texts = {path.stem: _COMMENT.sub("", path.read_text()) for path in FOLDER.glob("*.md")}
        self._markdown = MarkdownIt("js-default")  # with tables, and without HTML of the text's own

    async def show(self, request: web.Request) -> web.StreamResponse:
        """One of them, their list, or what a code means; they name each other by their files."""
        name = request.match_info.get("name", INDEX).removesuffix(".md")
        found = self._texts.get(name) or (_of_code(name) if is_code(name) else None)
        if found is None:
            told = f"There is no runbook {name[:60]!r}{codes.nearest(name[:60], sorted(self._texts))}"
            why = Markup('{} <a href="/runbooks/{}">All runbooks</a>').format(told, INDEX)
            return self._frame.render(request, "error.html", status=404, code=404, why=why)
        text = Markup(self._markdown.render(found))  # noqa: S704 - the renderer escapes what is no Markdown
        return self._frame.render(request, "runbook.html", name=name, text=text)


def _of_code(code: str) -> str:
    """What a code means, and the way to its runbook."""
    book = runbook(code)
    return brief(code) + ("" if needs_nothing(code) else f"\nWhat to do: [{book}](/runbooks/{book})\n")
