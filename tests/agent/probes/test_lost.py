from agent.probes.lost import LostProbe
from agent.probes.probe import Clear
from tests.agent.made import call, pci, sample, scene, uuid
from vocab.events import Flag
from vocab.observations import GpuSample


class Watch:
    def __init__(self):
        self.scene, self.probe = scene(), LostProbe()

    def read(self, *reads):
        return [v for read in reads for v in self.probe.observe(read, self.scene, read.at)]


def good(at, *gpus):
    return [sample(at, gpu, power_w=70.0) for gpu in gpus]


def test_the_first_lost_read_says_it_and_the_others_are_silent():
    watch = Watch()
    (found,) = watch.read(sample(1.0, 3, error="GPU_IS_LOST"))
    assert (found.code, found.gpu, found.pci) == ("gpu_lost", uuid(3), pci(3))
    assert watch.read(sample(2.0, 3, error="GPU_IS_LOST")) == []
    assert watch.scene.absent == {uuid(3)}


def test_a_lost_gpu_that_answers_again_is_cleared():
    watch = Watch()
    watch.read(sample(1.0, 3, error="GPU_IS_LOST"))
    (ended,) = watch.read(sample(2.0, 3, power_w=70.0))
    assert isinstance(ended, Clear)
    assert watch.scene.absent == set()


def test_one_reading_that_says_lost_is_enough():
    read = GpuSample(at=1.0, gpu=uuid(3), errors={"power_w": "GPU_IS_LOST"})
    assert [v.code for v in Watch().read(read)] == ["gpu_lost"]


def test_a_call_that_says_lost_is_enough():
    assert [v.gpu for v in Watch().read(call(1.0, "failed", "nvmlDeviceGetPowerUsage", 3, "GPU_IS_LOST"))] == [uuid(3)]


def test_an_unknown_error_between_good_reads_is_nothing():
    watch = Watch()
    assert watch.read(*good(0.0, 0, 3), sample(1.0, 3, error="UNKNOWN"), *good(2.0, 0, 3)) == []
    assert watch.probe.next_deadline() is None


def test_two_unknown_errors_in_a_row_are_a_loss_while_others_answer():
    watch = Watch()
    watch.read(*good(0.0, 0))
    assert [v.gpu for v in watch.read(sample(1.0, 3, error="UNKNOWN"), sample(2.0, 3, error="UNKNOWN"))] == [uuid(3)]


def test_a_handle_that_cannot_be_had_is_a_loss_at_once():
    watch = Watch()
    (found,) = watch.read(*good(0.0, 0), GpuSample(at=1.0, index=5, error="UNKNOWN"))
    assert (found.gpu, found.pci) == (uuid(5), pci(5))


def test_it_is_lost_though_the_others_are_read_after_it():
    found = Watch().read(GpuSample(at=1.0, index=0, error="UNKNOWN"), *good(1.0, 1, 2))
    assert [v.gpu for v in found] == [uuid(0)]


def test_a_gpu_that_stays_silent_is_lost_after_a_while():
    watch = Watch()
    watch.read(*good(0.0, 0), sample(1.0, 3, error="UNKNOWN"))
    assert watch.probe.next_deadline() == 16.0
    assert [v.gpu for v in watch.probe.tick(watch.scene, 16.0)] == [uuid(3)]
    assert watch.probe.next_deadline() is None


def test_if_nobody_can_be_read_nobody_is_lost():
    watch = Watch()
    reads = [sample(float(at), gpu, error="UNKNOWN") for at in range(100) for gpu in range(8)]
    assert watch.read(*reads) == []
    assert watch.probe.tick(watch.scene, 100.0) == []
    assert watch.probe.next_deadline() is None


def test_two_gpus_can_be_lost_at_once():
    watch = Watch()
    found = watch.read(sample(1.0, 3, error="GPU_IS_LOST"), sample(1.0, 4, error="GPU_IS_LOST"))
    assert [v.gpu for v in found] == [uuid(3), uuid(4)]


def test_an_address_that_nobody_knows_blames_no_gpu():
    (found,) = Watch().read(GpuSample(at=1.0, pci="0000:99:00", error="GPU_IS_LOST"))
    assert (found.gpu, found.pci, found.flags) == (None, "0000:99:00", (Flag.LOOKUP_FAILED,))
