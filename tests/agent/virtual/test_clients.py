from agent.virtual.clients import Client, clients


def test_a_program_that_says_so_holds_a_gpu(tmp_path):
    (tmp_path / "42").write_text('{"gpu": 3, "used_bytes": 1000, "utilization": 0.5}')
    assert list(clients(tmp_path)) == [(42, Client(gpu=3, used_bytes=1000, utilization=0.5))]


def test_a_file_that_is_being_written_says_nothing_yet(tmp_path):
    (tmp_path / "42").write_text('{"gpu": 3, "us')
    (tmp_path / "43.new").write_text('{"gpu": 3, "used_bytes": 1}')
    assert list(clients(tmp_path)) == []


def test_without_a_folder_there_is_nobody(tmp_path):
    assert list(clients(tmp_path / "clients")) == []
