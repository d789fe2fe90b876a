"""Wrong GPU: a replica runs on another GPU than it was given.

Two witnesses: what its environment lets it see (read once a life: an index means what it meant when the process
began, whatever is renumbered later), and where the driver lists its processes. A second context on another GPU
beside its own is a habit of frameworks and no fault; nothing on its own and something elsewhere is one.
"""

from collections.abc import Sequence

import msgspec

from agent.probes.probe import Clear, Finding, Verdict
from agent.probes.scene import Scene
from agent.probes.tenants import LEAVING, Look, Tenant, Tenants
from agent.probes.visible import index_of
from vocab.events import Evidence, Source, rfc3339

CODE = "replica_wrong_gpu"
UNTOLD = frozenset({"", "all", "none", "void", "nodevfiles"})  # nothing that can be compared; "" runs on the processor


class Sight(msgspec.Struct):
    """What one life of a replica sees, and whether that was found wrong."""

    visible: str | None = None
    elsewhere: tuple[str, ...] = ()  # by what it may see: the GPUs that it has instead
    said: bool = False


class WrongGpuProbe(msgspec.Struct):
    """Compares where each replica should run with where it can and does."""

    sights: dict[str, Sight] = {}

    def looked(self, look: Look, tenants: Tenants, scene: Scene) -> Sequence[Verdict]:
        """Take one look at one replica."""
        seen, tenant = look.seen, look.tenant
        sight = self.sights.setdefault(tenant.replica, Sight())
        if look.is_new_life:
            self.sights[tenant.replica] = sight = Sight(said=sight.said)
        if seen.visible is not None and seen.visible != sight.visible and tenant.members:
            sight.visible, sight.elsewhere = seen.visible, _elsewhere(seen.visible, tenant, scene)
        return self.review(tenant, tenants, seen.at)

    def review(self, tenant: Tenant, tenants: Tenants, at: float) -> Sequence[Verdict]:
        """Compare anew, after anything was heard of the replica or of its GPUs."""
        sight = self.sights.setdefault(tenant.replica, Sight())
        if tenant.ended_at is not None or tenant.phase in LEAVING:
            return ()
        found = sight.elsewhere or (_listed_elsewhere(tenant, tenants) if tenant.phase == "ready" else ())
        if bool(found) == sight.said:
            return ()
        sight.said = bool(found)
        if not found:
            return (Clear(code=CODE, at=at, name=tenant.replica),)
        return (_wrong(tenant, found, sight, at),)


def _elsewhere(visible: str, tenant: Tenant, scene: Scene) -> tuple[str, ...]:
    """The GPUs that it may see, if one of its own is not among them; () if all is well or cannot be told."""
    words = [word.strip() for word in visible.split(",") if word.strip()]
    if not words or visible.strip().lower() in UNTOLD:
        return ()
    named = [_gpu(word, tenant, scene) for word in words]
    if None in named:
        return ()
    missing = [member.gpu for member in tenant.members if member.node in {"", scene.node} and member.gpu not in named]
    return tuple(gpu for gpu in named if gpu is not None) if missing else ()


def _gpu(word: str, tenant: Tenant, scene: Scene) -> str | None:
    """The GPU that one word of CUDA_VISIBLE_DEVICES means: an index, the beginning of a UUID, a MIG instance."""
    index = index_of(word)
    if index is not None:
        return next((gpu.uuid for gpu in scene.gpus.values() if gpu.index == index), None)
    if word.startswith("MIG-"):
        slices = ((gpu.uuid, mig.get("uuid")) for gpu in scene.gpus.values() for mig in gpu.mig)
        return next((parent for parent, uuid in slices if uuid == word), None)
    known = [*scene.gpus, *tenant.gpus]
    return next((uuid for uuid in known if uuid.startswith(word)), word if word.startswith("GPU-") else None)


def _listed_elsewhere(tenant: Tenant, tenants: Tenants) -> tuple[str, ...]:
    """The GPUs that list its processes, if none of its own does and all of these have told."""
    pids = set(tenants.pids_of(tenant))
    own = [tenants.gpus.get(gpu) for gpu in tenant.gpus]
    if not pids or not own or any(known is None or known.processes is None for known in own):
        return ()
    if any(known is not None and (known.told_at or 0.0) < tenant.began_at for known in own):
        return ()
    where = {gpu for gpu, known in tenants.gpus.items() if known.processes and pids & known.processes.keys()}
    where |= {gpu for pid in pids if pid in tenants.processes for gpu in tenants.processes[pid].used}
    return () if where & set(tenant.gpus) else tuple(sorted(where))


def _wrong(tenant: Tenant, found: Sequence[str], sight: Sight, at: float) -> Finding:
    stamp = rfc3339(at)
    fields = tenant.fields() | {"runs_on": list(found), "visible": sight.visible}
    return Finding(
        code=CODE,
        at=at,
        source=Source.HOST,
        first=(CODE, tenant.replica, stamp),
        pid=tenant.pids[0] if tenant.pids else None,
        fields=fields,
        text=f"it should run on {', '.join(tenant.gpus)} and has {', '.join(found)}",
        evidence=(Evidence(source="host", at=stamp, readings={"visible": sight.visible, "runs_on": list(found)}),),
    )
