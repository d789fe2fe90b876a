import msgspec
import pytest

from agent.probes.presence import PresenceProbe, same_version
from agent.probes.probe import Clear, Finding
from tests.agent.made import identity, inventory, pci, scene, source, uuid
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
    (removed,) = watch.see(inventory(10.0, gpus=(0, 1, 2, 4, 5, 6, 7), pci_devices=away, expected_gpus=8))
    assert (removed.code, removed.gpu) == ("gpu_removed", uuid(3))
    assert watch.probe.excluded == [pci(3)]


def test_a_replaced_board_is_not_missing():
    watch = Watch(gpus=(0, 1))
    swapped = msgspec.structs.replace(inventory(10.0), gpus=(identity(0), identity(1, uuid="GPU-new")))
    (replaced,) = watch.see(swapped)
    assert (replaced.code, replaced.gpu, replaced.fields["by"]) == ("gpu_replaced", uuid(1), "GPU-new")
    assert set(watch.probe.known) == {uuid(0), "GPU-new"}
    assert watch.see(swapped) == []


def test_a_board_that_moved_to_the_address_of_a_missing_one_has_not_replaced_it():
    watch = Watch(gpus=(0, 1))
    mismatch, missing = watch.see(msgspec.structs.replace(inventory(10.0), gpus=(identity(1, index=0, pci=pci(0)),)))
    assert (missing.code, missing.gpu, missing.pci) == ("gpu_missing", uuid(0), None)
    assert mismatch.fields["missing"] == [uuid(0)]


def test_two_boards_that_changed_places_are_both_here():
    watch = Watch(gpus=(0, 1))
    swapped = (identity(0, pci=pci(1), index=1), identity(1, pci=pci(0), index=0))
    assert watch.see(msgspec.structs.replace(inventory(10.0), gpus=swapped)) == []


def test_renumbered_survivors_are_no_news():
    watch = Watch(gpus=(0, 1))
    found = watch.see(msgspec.structs.replace(inventory(10.0), gpus=(identity(1, index=0),)))
    assert [v.gpu for v in found] == [None, uuid(0)]


def test_fewer_than_configured_is_a_fault_of_an_unknown_slot():
    watch = Watch(gpus=(0, 1, 2), expected_gpus=4)
    (gap,) = watch.probe.gaps.values()
    assert (gap.gpu, gap.pci) == (None, None)


def test_without_a_driver_nothing_is_missing():
    assert Watch().see(inventory(10.0, gpus=(), driver=None)) == []


def test_with_a_library_of_another_build_nothing_is_missing():
    assert Watch().see(inventory(10.0, gpus=(), driver="550.90.07", library="550.127.08")) == []


def test_while_nvml_is_down_an_empty_list_says_nothing():
    watch = Watch()
    watch.probe.observe(source(5.0, "down", error="UNKNOWN"), watch.scene, 5.0)
    assert watch.see(inventory(10.0, gpus=())) == []
    watch.probe.observe(source(15.0, "up"), watch.scene, 15.0)
    assert len(watch.see(inventory(20.0, gpus=()))) == 9


@pytest.mark.parametrize(
    ("library", "same"),
    [
        ("550.90.07", True),
        ("12.550.90.07", True),
        ("550.127.08", False),
        ("550.127", False),
        ("550.90", True),
        ("12", True),
    ],
)
def test_a_library_is_compared_by_the_drivers_number(library, same):
    assert same_version("550.90.07", library) is same


def test_the_count_names_what_bus_and_driver_show():
    devices = tuple(PciDevice(pci=pci(i) + ".0", class_="030200", driver="nvidia") for i in range(4))
    mismatch, _ = Watch(gpus=(0, 1, 3)).see(inventory(10.0, gpus=(0, 1, 3), pci_devices=devices, expected_gpus=5))
    fields = mismatch.fields
    assert (fields["expected"], fields["pci"], fields["nvml"]) == (5, 4, 3)
    assert fields["missing"] == [pci(2), "unknown slot"]


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
