from pathlib import Path

from agent.judge import Judge
from agent.sources.pci import nvidia_devices, on_bus
from tests.agent.sources.host_tree import write
from vocab.messages import EventItem
from vocab.observations import GpuIdentity, NodeSeen, PciDevice, Report


def device(
    sys: Path, address: str, kind: str = "0x030200", vendor: str = "0x10de", driver: str | None = "nvidia"
) -> None:
    where = f"bus/pci/devices/{address}"
    write(sys, {f"{where}/vendor": f"{vendor}\n", f"{where}/class": f"{kind}\n"})
    if driver is not None:
        (sys / f"bus/pci/drivers/{driver}").mkdir(parents=True, exist_ok=True)
        (sys / where / "driver").symlink_to(f"../../drivers/{driver}")


def test_gpus_and_switches_of_nvidia_are_listed_with_their_drivers(tmp_path):
    device(tmp_path, "0000:5d:00.0")
    device(tmp_path, "0000:5e:00.0", driver="vfio-pci")
    device(tmp_path, "0000:5f:00.0", driver=None)
    device(tmp_path, "0000:60:00.0", kind="0x068000", driver="nvidia-nvswitch")
    device(tmp_path, "0000:5d:00.1", kind="0x040300", driver="snd_hda_intel")  # the GPU's sound
    device(tmp_path, "0000:02:00.0", kind="0x030000", vendor="0x1a03", driver="ast")  # the board's own display
    assert nvidia_devices(tmp_path) == (
        PciDevice(pci="0000:5d:00", class_="0302", driver="nvidia"),
        PciDevice(pci="0000:5e:00", class_="0302", driver="vfio-pci"),
        PciDevice(pci="0000:5f:00", class_="0302", driver=None),
        PciDevice(pci="0000:60:00", class_="0680", driver="nvidia-nvswitch"),
    )


def test_a_machine_without_a_bus_has_none(tmp_path):
    assert nvidia_devices(tmp_path) == ()


def test_a_gpu_on_the_bus_that_the_driver_does_not_list_is_missing(tmp_path):
    device(tmp_path, "0000:5d:00.0")
    device(tmp_path, "0000:5e:00.0")
    listed = GpuIdentity(uuid="GPU-1", index=0, pci="0000:5d:00")
    seen = NodeSeen(at=1_000.0, node="n1", boot_id="b", boot_at=0.0, driver="580.95.05", gpus=(listed,))
    found = on_bus(tmp_path)(seen)
    items = Judge("n1", "b").observe(found, 1_000.0)
    told = {(item.event.code, item.event.pci) for item in items if isinstance(item, EventItem)}
    assert told == {("gpu_count_mismatch", None), ("gpu_missing", "0000:5e:00")}


def test_other_observations_pass(tmp_path):
    report = Report(at=1.0)
    assert on_bus(tmp_path)(report) is report
