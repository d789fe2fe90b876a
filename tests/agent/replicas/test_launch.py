import socket
from pathlib import Path

import msgspec
import pytest

from agent.replicas import ports
from agent.replicas.launch import command, environment
from agent.replicas.record import KEPT_LOGS, Folder, known, marks, prune
from tests.agent.replicas.node import spec
from vocab.errors import Refused
from vocab.events import Mig
from vocab.observations import Member


def test_the_command_line_says_all_that_an_engine_needs(tmp_path: Path) -> None:
    made = spec("r1", "GPU-1", "GPU-2", options={"max_running": 8})
    words = command(made, Folder(tmp_path, "r1"), 7430, ("python", "-m", "engine"), cpu=True)
    assert words[:6] == ("nice", "-n", "10", "python", "-m", "engine")
    flags = dict(zip(words[6::2], words[7::2], strict=True))
    assert flags == {
        "--replica": "r1", "--model": "none", "--served-name": "chat", "--listen": "127.0.0.1:7430",
        "--beat": str(tmp_path / "replicas/r1/beat"), "--device": "cpu", "--gpus": "GPU-1,GPU-2",
        "--drain-s": "20", "--threads": "1", "--max-running": "8",
    }  # fmt: skip


def test_on_gpus_it_is_not_nice_and_sees_its_own_gpus_alone(tmp_path: Path) -> None:
    made = spec("r1", "GPU-1", "GPU-2")
    words = command(made, Folder(tmp_path, "r1"), 7430, ("python",), cpu=False)
    assert words[0] == "python"
    assert "cuda" in words
    env = environment(made, {"PATH": "/bin", "NOTIFY_SOCKET": "/run/x"}, marks("r1", Path("/run/b")), cpu=False)
    assert env["CUDA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"
    assert (env["CORRAL_REPLICA"], env["CORRAL_BEAT"]) == ("r1", "/run/b")
    assert "NOTIFY_SOCKET" not in env
    assert "OMP_NUM_THREADS" not in env


def test_a_port_is_free_unnamed_and_rested() -> None:
    assert ports.choose(7430, {7430}, {7431}, lambda port: port != 7432) == 7433


def test_a_resting_port_is_better_than_none() -> None:
    assert ports.choose(7430, (), {7431}, lambda port: port == 7431) == 7431


def test_no_port_at_all_is_said() -> None:
    with pytest.raises(Refused, match="replica_base_port"):
        ports.choose(7430, (), (), lambda _: False)


def test_a_port_on_which_someone_listens_is_not_free() -> None:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()
        assert not ports.is_free(door.getsockname()[1])


def test_logs_of_replicas_that_are_gone_are_kept_for_a_while(tmp_path: Path) -> None:
    for number in range(KEPT_LOGS + 3):
        folder = Folder(tmp_path, f"r{number:02}")
        folder.make()
        folder.log.write_text("last words\n")
    prune(tmp_path, frozenset({"r00"}))
    assert len(known(tmp_path)) == KEPT_LOGS + 1
    assert "r00" in known(tmp_path)


def test_a_replica_whose_deployment_has_a_slash_is_found_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path, "org/chat-1")
    folder.make()
    folder.log.write_text("last words\n")
    assert known(tmp_path) == ("org/chat-1",)
    assert Folder(tmp_path, known(tmp_path)[0]).path == folder.path


def test_a_part_of_a_gpu_is_seen_by_its_own_name(tmp_path: Path) -> None:
    made = msgspec.structs.replace(spec("r1", "GPU-1"), members=(Member(node="n1", gpu="GPU-1", mig=Mig(2, 0)),))
    assert environment(made, {}, {}, cpu=False)["CUDA_VISIBLE_DEVICES"] == "MIG-GPU-1/2/0"
