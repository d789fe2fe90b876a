import msgspec
import pytest

from agent.probes.container import ContainerProbe
from agent.probes.visible import judge
from tests.agent.made import fallen, replica, sample, scene, uuid
from vocab.events import Severity
from vocab.observations import Exit


def good(at, index=0):
    return sample(at, index, power_w=300.0)


def play(*observations, node=None):
    probe, node = ContainerProbe(), node or scene()
    return [(type(v).__name__, v.code) for seen in observations for v in probe.observe(seen, node, seen.at)]


LOST = [("Finding", "container_device_access_lost")]


@pytest.mark.parametrize(
    "error",
    ["UNKNOWN", "NVML_ERROR_UNKNOWN", "OPERATING_SYSTEM", 999, 100, "100", "CUDA_ERROR_NO_DEVICE", "cudaErrorUnknown"],
)
def test_a_replica_that_is_cut_off_on_a_sound_gpu_lost_its_devices(error):
    assert play(replica(1.0, error=error), good(2.0)) == LOST


@pytest.mark.parametrize("error", [700, 719, 214, 2, "GPU_IS_LOST", None])
def test_other_errors_are_not_about_the_way_to_the_driver(error):
    assert play(replica(1.0, error=error), good(2.0)) == []


def test_the_host_must_have_read_the_gpu_after_the_replica_failed():
    assert play(good(0.5), replica(1.0, error="UNKNOWN")) == []
    assert play(replica(1.0, error="UNKNOWN"), sample(2.0, 0, error="UNKNOWN")) == []


def test_every_gpu_of_the_replica_must_be_sound():
    both = replica(1.0, error="UNKNOWN", gpus=(uuid(0), uuid(1)))
    assert play(both, good(2.0, 0)) == []
    assert play(both, good(2.0, 0), good(2.0, 1)) == LOST


def test_a_gpu_that_the_kernel_has_just_named_is_not_sound():
    assert play(fallen(0.9, 0), replica(1.0, error="UNKNOWN"), good(2.0)) == []


def test_a_gpu_that_is_absent_is_not_sound():
    node = scene()
    node.absent.add(uuid(0))
    assert play(replica(1.0, error="UNKNOWN"), good(2.0), node=node) == []


def test_a_new_container_ends_it_and_an_unknown_error_does_not():
    cut = [replica(1.0, error="UNKNOWN", pids=(5,)), good(2.0), replica(3.0, error=None, pids=(5,))]
    assert play(*cut) == LOST
    ended = [*LOST, ("Clear", "container_device_access_lost")]
    assert play(*cut, replica(4.0, pids=(6,))) == ended
    assert play(*cut, replica(4.0, phase="starting")) == ended
    assert play(*cut, replica(4.0, exit=Exit(code=0))) == ended


MIG = {"GPU-a": ["MIG-1", "MIG-2"], "GPU-b": []}
INDICES = {0: "GPU-a", 1: "GPU-b"}


@pytest.mark.parametrize("visible", ["MIG-1", "GPU-b", "1", "", "GPU-b,1", "all", "²", "9" * 5000])
def test_what_can_be_seen_is_well(visible):
    assert judge(visible, MIG, INDICES) is None


@pytest.mark.parametrize(
    ("visible", "severity", "says"),
    [
        ("MIG-1,MIG-2", Severity.WARNING, "MIG-1 is used"),
        ("0", Severity.ERROR, "name one of MIG-1, MIG-2"),
        ("GPU-a", Severity.ERROR, "name one of MIG-1, MIG-2"),
        ("MIG-9", Severity.ERROR, "MIG-9 is missing"),
        ("MIG-1,MIG-9", Severity.ERROR, "MIG-9 is missing"),
    ],
)
def test_what_cannot_be_seen_is_told_with_what_can(visible, severity, says):
    wish = judge(visible, MIG, INDICES)
    assert wish is not None
    assert wish.severity is severity
    assert says in wish.text


def test_nothing_is_cut_off_that_has_ended():
    ended = msgspec.structs.replace(replica(1.0, error="UNKNOWN"), exit=Exit(signal=9))
    assert play(ended, good(2.0)) == []
