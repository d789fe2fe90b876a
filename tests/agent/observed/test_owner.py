import pytest

from agent.observed.owner import owner_of

ID = "4f2a9c0de1b8" + "0" * 52
UNIT = "/system.slice/vllm.service"
POD = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


@pytest.mark.parametrize(
    ("cgroup", "kind", "name"),
    [
        ("0::/system.slice/vllm.service", "systemd-unit", "vllm.service"),
        ("0::/system.slice/system-vllm.slice/vllm@8001.service", "systemd-unit", "vllm@8001.service"),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/chat.service/sub",
            "systemd-unit",
            "chat.service",
        ),
        (f"12:devices:{UNIT}\n1:name=systemd:{UNIT}", "systemd-unit", "vllm.service"),
        (f"0::/system.slice/docker-{ID}.scope", "container", ID[:12]),
        (f"4:memory:/docker/{ID}", "container", ID[:12]),
        (f"0::/machine.slice/libpod-{ID}.scope/container", "container", ID[:12]),
        (f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-containerd-{ID}.scope", "kubernetes", POD),
        (f"11:cpuset:/kubepods/besteffort/pod{POD}/{ID}", "kubernetes", POD),
        ("0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0", "slurm", "job-4711"),
        ("8:freezer:/slurm/uid_1000/job_12/step_batch", "slurm", "job-12"),
        ("0::/user.slice/user-1000.slice/session-3.scope", "process", "vllm"),
        ("0::/user.slice/user-1000.slice/user@1000.service/tmux-spawn.scope", "process", "vllm"),
        ("0::/", "process", "vllm"),
        ("", "process", "vllm"),
    ],
)  # fmt: skip
def test_the_cgroup_names_the_owner(cgroup, kind, name):
    owner = owner_of(cgroup, 1000, "vllm")
    assert (owner.kind, owner.name, owner.uid) == (kind, name, 1000)


def test_a_pod_is_called_by_its_name_where_that_can_be_read():
    path = f"0::/kubepods/pod{POD}/{ID}"
    assert owner_of(path, 0, "vllm", "vllm-7c9d8b6f5-x2x4k").name == "vllm-7c9d8b6f5-x2x4k"
    assert owner_of(path, 0, "vllm", "vllm-0").name == "vllm-0"
    assert owner_of(path, 0, "vllm", "gpu.example.com").name == POD


def test_an_owner_reads_as_words():
    assert str(owner_of("0::/system.slice/vllm.service", 1000, "vllm")) == "systemd-unit vllm.service, uid 1000"
