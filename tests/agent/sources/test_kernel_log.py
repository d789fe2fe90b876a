import os
from pathlib import Path

import pytest

from agent.config import AgentConfig
from agent.sources.journal import JournalSource
from agent.sources.kernel_log import kernel_log
from agent.sources.kmsg import KmsgSource
from agent.sources.source import Source
from vocab.clock import VirtualClock


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A PATH on which there is a journalctl."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/journalctl").write_text("#!/bin/sh\n")
    (tmp_path / "bin/journalctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def chosen(tmp_path: Path, kmsg: Path, wanted: str = "auto") -> Source:
    config = AgentConfig(
        node="n1", controller="http://127.0.0.1:1", state_dir=tmp_path, run_dir=tmp_path, kmsg=kmsg, kernel_log=wanted
    )
    return kernel_log(config, VirtualClock(), "boot-1", None)


@pytest.fixture
def kmsg(tmp_path):
    os.mkfifo(tmp_path / "kmsg")
    return tmp_path / "kmsg"


def test_kmsg_is_read_where_it_can_be_opened(tmp_path, programs, kmsg):
    assert isinstance(chosen(tmp_path, kmsg), KmsgSource)


def test_the_journal_is_read_where_kmsg_cannot_be_opened(tmp_path, programs):
    assert isinstance(chosen(tmp_path, tmp_path / "absent"), JournalSource)


def test_without_journalctl_it_is_kmsg_which_says_what_is_missing(tmp_path, programs):
    (programs / "journalctl").unlink()
    assert isinstance(chosen(tmp_path, tmp_path / "absent"), KmsgSource)


def test_the_configuration_has_the_last_word(tmp_path, programs, kmsg):
    assert isinstance(chosen(tmp_path, kmsg, "journal"), JournalSource)
    assert isinstance(chosen(tmp_path, tmp_path / "absent", "kmsg"), KmsgSource)
