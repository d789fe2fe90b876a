import msgspec

from agent.probes.presence import PresenceProbe
from agent.probes.probe import Clear, Finding
from tests.agent.made import identity, inventory, pci, sample, scene, uuid
from vocab.events import Severity
from vocab.observations import PciDevice


class Watch:
    def __init__(self, **first):
        self.scene, self.probe = scene(), PresenceProbe()
        self.see(inventory(0.0, **first))

    def see(self, seen, now=None):
        now = seen.at if now is None else now
        self.scene.see(seen)
        return list(self.probe.observe(seen, self.scene, now))

    def read(self, read):
        return list(self.probe.observe(read, self.scene, read.at))


def test_the_first_lost_read_says_it_and_the_others_are_silent():
    watch = Watch()
    (found,) = watch.read(sample(1.0, 3, error="GPU_IS_LOST"))
    assert (found.code, found.gpu) == ("gpu_lost", uuid(3))
    assert watch.read(sample(2.0, 3, error="GPU_IS_LOST")) == []
    assert watch.scene.absent == {uuid(3)}


def test_another_error_of_a_read_is_not_a_loss():
    assert Watch().read(sample(1.0, 3, error="UNKNOWN")) == []


def test_a_lost_gpu_that_answers_again_is_cleared():
    watch = Watch()
    watch.read(sample(1.0, 3, error="GPU_IS_LOST"))
    (ended,) = watch.read(sample(2.0, 3, power_w=70.0))
    assert isinstance(ended, Clear)
    assert watch.scene.absent == set()


def test_a_gpu_that_the_inventory_leaves_out_is_missing():
    watch = Watch()
    mismatch, missing = watch.see(inventory(10.0, gpus=(0, 1, 2, 4, 5, 6, 7)))
    assert (mismatch.code, mismatch.gpu) == ("gpu_count_mismatch", None)
    assert (missing.code, missing.gpu, missing.pci) == ("gpu_missing", uuid(3), pci(3))
    assert watch.see(inventory(70.0, gpus=(0, 1, 2, 4, 5, 6, 7))) == []


def test_its_return_clears_both():
    watch = Watch()
    watch.see(inventory(10.0, gpus=(0, 1)))
    assert {type(v) for v in watch.see(inventory(20.0))} == {Clear}


def test_the_bus_shows_a_gpu_that_the_driver_never_listed():
    devices = tuple(PciDevice(pci=pci(i), class_="0x030200", driver="nvidia") for i in range(4))
    noise = (
        PciDevice(pci="0000:05:00", class_="0x068000", driver=None),
        PciDevice(pci="0000:16:00", class_="0x040300", driver="snd"),
    )
    watch = Watch(gpus=(0, 1, 3), pci_devices=(*devices, *noise))
    found = list(watch.probe.gaps.values())
    assert [gap.pci for gap in found] == [pci(2)]


def test_a_gpu_that_a_virtual_machine_holds_is_not_missing():
    watch = Watch()
    away = (PciDevice(pci=pci(3), class_="0x030200", driver="vfio-pci"),)
    assert watch.see(inventory(10.0, gpus=(0, 1, 2, 4, 5, 6, 7), pci_devices=away)) == []


def test_a_replaced_board_is_not_missing():
    watch = Watch(gpus=(0, 1))
    swapped = msgspec.structs.replace(inventory(10.0), gpus=(identity(0), identity(1, uuid="GPU-new")))
    assert watch.see(swapped) == []
    assert uuid(1) not in watch.probe.known


def test_fewer_than_configured_is_a_fault_of_an_unknown_slot():
    watch = Watch(gpus=(0, 1, 2), expected_gpus=4)
    (gap,) = watch.probe.gaps.values()
    assert (gap.gpu, gap.pci) == (None, None)


def test_without_a_driver_nothing_is_missing():
    assert Watch().see(inventory(10.0, gpus=(), driver=None)) == []


def test_while_the_node_starts_it_is_information_and_a_fault_only_after():
    watch = Watch(boot_at=0.0)
    found = watch.see(inventory(10.0, gpus=(0,), boot_at=0.0))
    assert {v.severity for v in found} == {Severity.INFO}
    assert watch.probe.next_deadline() == 300.0
    assert watch.probe.tick(watch.scene, 299.0) == ()
    late = list(watch.probe.tick(watch.scene, 300.0))
    assert {v.severity for v in late if isinstance(v, Finding)} == {None}
    assert {v.first for v in late}.isdisjoint({v.first for v in found})
    assert watch.probe.next_deadline() is None
