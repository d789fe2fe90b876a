"""The report in the form that is asked for."""

import msgspec

from corral.survey.markdown import markdown
from corral.survey.page import page
from corral.survey.report import Survey


def written(survey: Survey, form: str) -> str:
    """``form``: markdown, html or json."""
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(survey)).decode() + "\n"
    return page(survey) if form == "html" else markdown(survey)
