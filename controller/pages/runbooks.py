"""The runbooks as pages: what an incident's code means, and what to do about it."""

import re
from pathlib import Path

from aiohttp import web
from markdown_it import MarkdownIt
from markupsafe import Markup

from controller.pages.frame import Frame

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
        """One of them, or their list; they name each other by their files."""
        name = request.match_info.get("name", INDEX).removesuffix(".md")
        if name not in self._texts:
            raise web.HTTPNotFound(reason=f"there is no runbook {name[:60]!r}; /runbooks/{INDEX} lists them")
        text = Markup(self._markdown.render(self._texts[name]))  # noqa: S704 - the renderer escapes what is no Markdown
        return self._frame.render(request, "runbook.html", name=name, text=text)
