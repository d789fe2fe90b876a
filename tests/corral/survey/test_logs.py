"""Which files are whose: folders of nodes, files named after nodes, rotated logs; and hosts by name."""

from pathlib import Path

import pytest

from agent.kernel.stamps import Stamps, zone
from corral.survey.logs import logs, oldest_first
from corral.survey.ssh import command, hosts
from vocab.errors import InputError

STAMPS = Stamps(zone(None), 1_796_000_000.0, None)


def touch(path: Path, text: str = "") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_a_folder_of_folders_is_a_folder_a_node(tmp_path: Path) -> None:
    touch(tmp_path / "n1" / "kern.log")
    touch(tmp_path / "n1" / "old" / "kern.log.1")
    touch(tmp_path / "n2" / "dmesg")
    assert [(log.node, len(log.paths)) for log in logs([str(tmp_path)])] == [("n1", 2), ("n2", 1)]


def test_files_are_named_after_nodes_whatever_they_end_in(tmp_path: Path) -> None:
    for name in ("n1.log", "n1.log.1", "n1.log.2.gz", "n2-20260101", "n3.json"):
        touch(tmp_path / name)
    assert [(log.node, len(log.paths)) for log in logs([str(tmp_path)])] == [("n1", 3), ("n2", 1), ("n3", 1)]


def test_a_file_with_a_usual_name_names_no_node(tmp_path: Path) -> None:
    assert [log.node for log in logs([touch(tmp_path / "kern.log")])] == ["unknown"]


def test_rotated_logs_are_read_oldest_first(tmp_path: Path) -> None:
    new = touch(tmp_path / "a", "no stamp here\n2026-11-20T00:00:00+00:00 n1 kernel: hello\n")
    old = touch(tmp_path / "b", "2026-11-10T00:00:00+00:00 n1 kernel: hello\n")
    assert oldest_first([new, old], STAMPS) == [old, new]


def test_hosts_are_words_lists_and_files(tmp_path: Path) -> None:
    file = touch(tmp_path / "hosts", "n3\n# a comment\nadmin@n4  # another\n\n")
    assert hosts(["n1,n2", f"@{file}", "n1"]) == ["n1", "n2", "n3", "admin@n4"]


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "n1;reboot", "$(x)", "n 1"])
def test_a_host_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="no name of a host"):
        hosts([name])


def test_ssh_is_asked_for_no_password_and_for_a_log_alone() -> None:
    words = command("ssh", "n1", 7)
    assert words[:3] == ["ssh", "-o", "BatchMode=yes"]
    assert words[words.index("--") + 1 : words.index("--") + 3] == ["n1", "journalctl"]
    assert words[-1] == "--since=-168h"
    assert all(" " not in word for word in words)
