import sys

from agent.release import release


def test_the_release_is_that_of_the_installation(tmp_path, monkeypatch):
    (tmp_path / "corral-1.2.3.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / "nothing"), str(tmp_path)])
    assert release() == "1.2.3"


def test_a_source_tree_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert release() == "0+source"
