import os

import pytest

from agent.observed.finder import Finder
from agent.observed.processes import Processes
from tests.agent.observed.tree import Tree

VLLM = ("/usr/bin/python3", "/usr/local/bin/vllm", "serve", "meta/llama", "--port", "8000")
NONE = frozenset()


@pytest.fixture
def tree(tmp_path):
    return Tree(tmp_path)


@pytest.fixture
def finder(tree):
    return Finder(Processes(tree.root))


def tensor_parallel(tree, **more):
    """A server, its core and two workers, as vLLM starts them."""
    tree.add(10, *VLLM, **more)
    tree.add(11, "VLLM::EngineCore", parent=10, session=10, **more)
    tree.add(12, "VLLM::Worker_TP0", parent=11, session=10, **more)
    tree.add(13, "VLLM::Worker_TP1", parent=11, session=10, **more)
    tree.listen(12, 29500)  # a rendezvous store of the workers
    tree.listen(10, 8000)


def test_the_workers_of_one_server_are_one_replica_over_their_gpus(tree, finder):
    tensor_parallel(tree, cgroup="0::/system.slice/vllm.service")
    (server,) = finder.find({"A": [12], "B": [13], "C": []}, NONE, 0.0).servers
    assert (server.process.pid, server.gpus, server.pids) == (10, ("A", "B"), (10, 11, 12, 13))
    assert (str(server.owner), server.engine.name) == ("systemd-unit vllm.service, uid 1000", "vllm")
    assert (server.model, server.port, server.urls) == ("meta/llama", 8000, ("http://127.0.0.1:8000",))


def test_two_servers_on_one_gpu_are_two_replicas(tree, finder):
    tree.add(10, *VLLM)
    tree.listen(10, 8000)
    tree.add(20, "vllm", "serve", "x", "--port=8001")
    tree.listen(20, 8001)
    found = finder.find({"A": [10, 20]}, NONE, 0.0).servers
    assert [(server.process.pid, server.port) for server in found] == [(10, 8000), (20, 8001)]


def test_a_port_of_a_program_that_is_no_known_server_is_never_asked(tree, finder):
    tree.add(10, "python3", "train.py", "--out", "/data/vllm")
    tree.listen(10, 29500)
    assert finder.find({"A": [10]}, NONE, 0.0).servers == ()


def test_what_belongs_to_no_server_is_the_work_of_its_owner(tree, finder):
    tree.add(10, "python3", "train.py", cgroup="0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0")
    tree.add(11, "python3", "/usr/bin/jupyter", parent=1, cgroup="0::/user.slice")
    found = finder.find({"A": [10], "B": [10, 11]}, NONE, 0.0)
    assert found.servers == ()
    assert [(str(work.owner), work.gpus, work.pids) for work in found.works] == [
        ("slurm job-42, uid 1000", ("A", "B"), (10,)),
        ("process jupyter, uid 1000", ("B",), (11,)),
    ]


@pytest.mark.parametrize("program", ["nvidia-cuda-mps-server", "/usr/bin/nv-hostengine", "/usr/lib/xorg/Xorg"])
def test_what_stands_beside_any_work_is_none(tree, finder, program):
    tree.add(10, program)
    assert finder.find({"A": [10]}, NONE, 0.0).works == ()


def test_what_the_agent_started_itself_is_nobodys_work(tree, finder):
    tree.add(10, "python3", "-m", "engine.diag", parent=os.getpid())
    tree.add(11, "python3", "worker", parent=10, session=10)
    tree.add(20, "corral-engine")
    assert finder.find({"A": [10, 11, 20]}, frozenset({20}), 0.0).works == ()


def test_a_server_that_still_loads_has_no_address_yet(tree, finder):
    tree.add(10, "python3", "-m", "sglang.launch_server", "--model-path", "/m/q", "--port", "30001")
    (server,) = finder.find({"A": [10]}, NONE, 0.0).servers
    assert (server.engine.name, server.model, server.urls, server.port) == ("sglang", "/m/q", (), 30001)


def test_a_server_that_got_its_port_elsewhere_is_asked_where_it_listens(tree, finder):
    tree.add(10, "vllm", "serve", "--config", "vllm.yaml")
    tree.listen(10, 9123)
    (server,) = finder.find({"A": [10]}, NONE, 0.0).servers
    assert (server.urls, server.model) == (("http://127.0.0.1:9123",), None)


def test_what_corral_started_is_not_observed(tree, finder):
    tensor_parallel(tree)
    assert finder.find({"A": [12], "B": [13]}, frozenset({10}), 0.0).servers == ()


def test_what_a_replica_of_ours_left_behind_is_not_observed(tree, finder):
    tensor_parallel(tree)
    tree.end(10)
    assert finder.find({"A": [12]}, frozenset({10}), 0.0).servers == ()


def test_a_process_that_is_gone_by_now_is_nothing(tree, finder):
    assert finder.find({"A": [4711]}, NONE, 0.0).servers == ()


class Blind(Processes):
    """What a user finds who may not read other people's descriptors."""

    def listens(self, pid):
        return None


def test_without_the_right_to_see_its_ports_the_one_that_its_command_line_names_is_checked(tree):
    tensor_parallel(tree)
    (server,) = Finder(Blind(tree.root)).find({"A": [12]}, NONE, 0.0).servers
    assert server.urls == ("http://127.0.0.1:8000",)


def test_without_the_right_a_port_of_another_user_is_nothing(tree):
    tree.add(10, *VLLM, uid=1000)
    tree.listen(10, 8000, uid=33)
    (server,) = Finder(Blind(tree.root)).find({"A": [10]}, NONE, 0.0).servers
    assert (server.urls, server.owner.uid) == (None, 1000)


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        (("nice", "-n", "10", "vllm", "serve", "x"), "vllm"),
        (("python3.11", "-m", "vllm.entrypoints.openai.api_server", "--model", "x"), "vllm"),
        (("/opt/venv/bin/python", "-u", "-m", "sglang.launch_server", "--model", "x"), "sglang"),
        (("/usr/bin/trtllm-serve", "x"), "command"),
        (("python3", "-P", "-m", "engine", "--model", "x", "--listen", "127.0.0.1:7430", "--beat", "/run/b"), "torch"),
        (("/usr/games/engine", "--listen", "1"), None),
        (("bash", "-c", "vllm serve x"), None),
        ((), None),
    ],
)
def test_an_engine_is_known_by_its_program(tree, finder, command, engine):
    tree.add(10, *command)
    assert [server.engine.name for server in finder.find({"A": [10]}, NONE, 0.0).servers] == (
        [engine] if engine else []
    )


class Counted(Processes):
    """Counts how often the table of connections is read."""

    reads = 0

    def listens(self, pid):
        self.reads += 1
        return super().listens(pid)


def test_where_a_server_listens_is_looked_for_once_a_minute_or_when_nobody_answers_there(tree):
    tensor_parallel(tree)
    processes = Counted(tree.root)
    finder = Finder(processes)
    for now in (0.0, 5.0, 10.0):
        (server,) = finder.find({"A": [12], "B": [13]}, NONE, now).servers
        assert server.urls == ("http://127.0.0.1:8000",)
    assert processes.reads == 1
    finder.doubt(server.process)
    finder.find({"A": [12]}, NONE, 15.0)
    finder.find({"A": [12]}, NONE, 80.0)
    assert processes.reads == 3


def test_a_server_that_loads_is_looked_at_each_time(tree, finder):
    tree.add(10, *VLLM)
    assert finder.find({"A": [10]}, NONE, 0.0).servers[0].urls == ()
    tree.listen(10, 8000)
    assert finder.find({"A": [10]}, NONE, 5.0).servers[0].urls == ("http://127.0.0.1:8000",)


@pytest.mark.parametrize("port", ["²", "9" * 5000, "70000", "0"])
def test_a_port_that_is_none_ends_nothing(tree, finder, port):
    tree.add(10, *VLLM[:-1], port)
    (server,) = finder.find({"A": [10]}, NONE, 0.0).servers
    assert (server.port, server.urls) == (8000, ())


def test_a_server_whose_command_line_is_gone_is_still_there(tree, finder):
    tree.add(10, *VLLM)
    finder.find({"A": [10]}, NONE, 0.0)
    (tree.root / "10" / "cmdline").write_text("")
    (server,) = finder.find({"A": [10]}, NONE, 5.0).servers
    assert server.process.pid == 10
