"""No command replaces a file that nobody said may go."""

from pathlib import Path

import pytest

from corral.files import refuse_to_replace
from vocab.errors import InputError


def test_a_file_that_is_there_is_replaced_only_by_who_says_so(tmp_path: Path) -> None:
    file = tmp_path / "evidence.tar"
    refuse_to_replace(file, force=False)
    file.write_text("of last week")
    with pytest.raises(InputError, match="is there already: name another file, or replace it with --force"):
        refuse_to_replace(file, force=False)
    refuse_to_replace(file, force=True)


def test_a_folder_that_is_not_there_is_named_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        refuse_to_replace(tmp_path / "no" / "evidence.tar", force=True)
