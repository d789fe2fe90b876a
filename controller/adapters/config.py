"""What the adapters are told: one table of ``controller.toml`` each. A manager without its table is left alone."""

from typing import Annotated, Literal

import msgspec

from controller.core.fleet.stimuli import Managing

Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
# when a person gives back in the manager what we closed there: our hold ends, or it is closed again
OnResume = Literal["lift", "close_again"]


class SlurmConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[slurm]``: nodes are drained and resumed by ``scontrol``, as the user of the controller."""

    scontrol: str = "scontrol"
    sinfo: str = "sinfo"
    conf: str | None = None  # SLURM_CONF of both; None: as they find it
    on_resume: OnResume = "lift"
    look_s: Seconds = 10.0  # between two looks at all nodes
    answer_s: Seconds = 30.0  # both wait long for a slurmctld that is away: 9 s with a time-out of 5 s

    @property
    def managing(self) -> Managing:
        """Before it has answered."""
        return Managing(by="slurm", nodes=True, whole=True, resume_lifts=self.on_resume == "lift")


class KubernetesConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[kubernetes]``: pods are evicted, and what is held is kept free of new ones as far as it is allowed here."""

    kubeconfig: str | None = None  # None: the service account of the pod that the controller runs in
    context: str | None = None
    cordon_nodes: bool = False  # a hold on one GPU cordons and taints its node: new pods are kept off all of its GPUs
    device_taints: bool = True  # where a DRA driver publishes the GPU, it alone is tainted
    device_driver: str = "gpu.nvidia.com"
    on_resume: OnResume = "lift"
    look_s: Seconds = 10.0
    foreign_keys: tuple[str, ...] = ()  # more labels, annotations or taints that mean: another remediator is at work

    @property
    def managing(self) -> Managing:
        """Before it has answered."""
        return Managing(by="kubernetes", nodes=True, ends=True, resume_lifts=self.on_resume == "lift")


class HookConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``[hook]``: a program of yours ends the replicas of deployments with ``managed_by = "hook"``."""

    command: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    answer_s: Seconds = 60.0

    @property
    def managing(self) -> Managing:
        """Before it has answered."""
        return Managing(by="hook", ends=True)
