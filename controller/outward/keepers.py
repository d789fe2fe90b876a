"""The keepers of the managers that the configuration names. What a manager needs is imported only then."""

from controller.adapters.hook import Hook
from controller.adapters.kubernetes.kubernetes import Kubernetes
from controller.adapters.slurm.slurm import Slurm
from controller.config import Config
from controller.deciding.conductor import Conductor
from controller.outward.keeper import Keeper
from controller.telling.export import Export
from vocab.clock import Clock

HOOK_LOOK_S = 60.0  # it has nothing to look at


def keepers(config: Config, conductor: Conductor, clock: Clock, export: Export) -> list[Keeper]:
    """One for each manager. Raises ConfigError if one cannot be used."""
    found = []
    if config.slurm is not None:
        found.append(
            Keeper(Slurm(config.slurm), config.slurm.managing, conductor, clock, export.asked, config.slurm.look_s)
        )
    if config.kubernetes is not None:
        cluster = Kubernetes(config.kubernetes, clock)
        found.append(
            Keeper(cluster, config.kubernetes.managing, conductor, clock, export.asked, config.kubernetes.look_s)
        )
    if config.hook is not None:
        found.append(Keeper(Hook(config.hook), config.hook.managing, conductor, clock, export.asked, HOOK_LOOK_S))
    return found
