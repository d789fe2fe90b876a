"""Who runs a process, told from its cgroup. Pure: the text of /proc/PID/cgroup in, an owner out.

Read from the inside out: a pod's container stands in the pod's slice, a container of a unit in a scope of its own.
Paths are those of systemd, Docker, Podman, containerd, CRI-O, Kubernetes and Slurm, with cgroup v1 and v2 alike.
"""

import re

from vocab.observations import Owner

ID = r"([0-9a-f]{64})"
_POD = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
_JOB = re.compile(r"/job_(\d+)(?:/|$)")
_CONTAINER = re.compile(rf"(?:/|docker-|libpod-|crio-|cri-containerd-|nerdctl-){ID}(?:\.scope)?(?:/|$)")
_UNIT = re.compile(r"/([^/]+\.service)(?=/|$)")
NO_UNIT = re.compile(r"^(user@\d+|init|slurmd|slurmstepd|docker|containerd|crio|podman|kubelet)\.service$")
SHORT_ID = 12  # as `docker ps` shows it


def owner_of(cgroup: str, uid: int | None, program: str, hostname: str | None = None) -> Owner:
    """The owner that the lines of /proc/PID/cgroup name; a plain process of ``program`` if they name none.

    ``hostname`` is HOSTNAME in its environment, which in a pod is the pod's name.
    """
    paths = "\n".join(line.partition(":")[2].partition(":")[2] for line in cgroup.splitlines())
    if pod := _POD.search(paths):
        return Owner(kind="kubernetes", name=_pod_name(hostname) or pod[1].replace("_", "-"), uid=uid)
    if job := _JOB.search(paths):
        return Owner(kind="slurm", name=f"job-{job[1]}", uid=uid)
    if container := _CONTAINER.search(paths):
        return Owner(kind="container", name=container[1][:SHORT_ID], uid=uid)
    units = [unit for unit in _UNIT.findall(paths) if not NO_UNIT.match(unit)]
    if units:
        return Owner(kind="systemd-unit", name=units[-1], uid=uid)
    return Owner(kind="process", name=program, uid=uid)


def _pod_name(hostname: str | None) -> str | None:
    """A pod's name ends in what its controller gave it; a node's name (host network) does not look like that."""
    return hostname if hostname and re.fullmatch(r"[a-z0-9.-]+-([a-z0-9]{5}|\d+)", hostname) else None
