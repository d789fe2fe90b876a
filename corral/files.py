"""Files that commands write: one that is there is replaced only by who asks for it."""

from pathlib import Path

import click

from vocab.errors import InputError

force_option = click.option("--force", is_flag=True, help="Replace the file if there is one.")


def refuse_to_replace(file: Path, *, force: bool) -> None:
    """Raise InputError if there is such a file, or if its folder is not there; before anything is asked or done."""
    if file.exists() and not force:
        raise InputError(f"{file} is there already: name another file, or replace it with --force")
    if not file.parent.is_dir():
        raise InputError(f"{file} cannot be written: there is no folder {file.parent}")
