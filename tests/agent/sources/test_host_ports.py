from collections.abc import Collection
from pathlib import Path
from typing import Any

from agent.judge import Judge
from agent.sources.host_ports import absent, find_ports
from tests.agent.sources.host_tree import ethernet, infiniband
from vocab.messages import EventItem
from vocab.observations import HostSample


def read_ports(sys: Path, named: Collection[str] = ()) -> dict[str, Any]:
    """All ports, as the source tells of them."""
    found = find_ports(sys)
    return {name: port.read(wanted=name in named) for name, port in found.items()} | absent(found, named)


def test_an_infiniband_port_is_told_with_its_counters(tmp_path):
    infiniband(tmp_path, "mlx5_0", link_downed=3, symbol_error=7, port_xmit_wait=9)
    port = read_ports(tmp_path)["mlx5_0"]
    assert port["state"] == "ACTIVE"
    assert (port["link_downed"], port["symbol_error"], port["port_xmit_wait"]) == (3, 7, 9)
    assert "port_xmit_discards" not in port


def test_ports_of_one_device_have_their_number(tmp_path):
    infiniband(tmp_path, "mlx5_0", 1)
    infiniband(tmp_path, "mlx5_0", 2)
    assert set(read_ports(tmp_path)) == {"mlx5_0/1", "mlx5_0/2"}


def test_a_port_that_lost_its_link_is_down(tmp_path):
    infiniband(tmp_path, "mlx5_0", state="1: DOWN", phys="2: Polling", link_downed=1)
    assert read_ports(tmp_path)["mlx5_0"]["state"] == "DOWN"


def test_a_port_that_never_had_a_link_or_is_switched_off_has_no_state(tmp_path):
    infiniband(tmp_path, "mlx5_0", state="1: DOWN", phys="2: Polling")
    infiniband(tmp_path, "mlx5_1", state="1: DOWN", phys="3: Disabled", link_downed=2)
    ports = read_ports(tmp_path)
    assert "state" not in ports["mlx5_0"]
    assert "state" not in ports["mlx5_1"]


def test_a_port_that_the_configuration_names_has_to_be_up(tmp_path):
    infiniband(tmp_path, "mlx5_0", state="1: DOWN", phys="2: Polling")
    ports = read_ports(tmp_path, ["mlx5_0", "mlx5_9"])
    assert ports["mlx5_0"]["state"] == "DOWN"
    assert ports["mlx5_9"]["state"] == "absent"


def test_a_roce_port_goes_by_the_carrier_of_its_interface(tmp_path):
    infiniband(tmp_path, "mlx5_0", state="1: DOWN", phys="3: Disabled", layer="Ethernet")
    ethernet(tmp_path, "ens1", of="mlx5_0", carrier=0, ups=3, downs=3)
    port = read_ports(tmp_path)
    assert set(port) == {"mlx5_0"}, "its interface is not told a second time"
    assert (port["mlx5_0"]["state"], port["mlx5_0"]["link_downed"]) == ("DOWN", 3)


def test_a_roce_port_whose_interface_is_switched_off_has_no_state(tmp_path):
    infiniband(tmp_path, "mlx5_0", state="1: DOWN", phys="3: Disabled", layer="Ethernet")
    ethernet(tmp_path, "ens1", of="mlx5_0", carrier=None, flags="0x1002", ups=3, downs=3)
    assert "state" not in read_ports(tmp_path)["mlx5_0"]


def test_plain_ethernet_counts_if_it_is_a_real_card_that_had_a_link(tmp_path):
    ethernet(tmp_path, "eth0", carrier=0, ups=2, downs=2)
    ethernet(tmp_path, "eth1", carrier=0, ups=0, downs=0)
    ethernet(tmp_path, "docker0", physical=False)
    ports = read_ports(tmp_path)
    assert ports["eth0"]["state"] == "down"
    assert "state" not in ports["eth1"]
    assert "docker0" not in ports


def test_a_carrier_that_fell_255_times_is_not_at_the_end_of_its_counter(tmp_path):
    ethernet(tmp_path, "eth0", downs=255)
    assert "link_downed" not in read_ports(tmp_path)["eth0"]


def test_a_machine_without_network_cards_has_no_ports(tmp_path):
    assert read_ports(tmp_path) == {}


def test_broken_files_are_left_out(tmp_path):
    infiniband(tmp_path, "mlx5_0")
    (tmp_path / "class/infiniband/mlx5_0/ports/1/counters/symbol_error").write_bytes(b"\xff\xfe")
    (tmp_path / "class/infiniband/mlx5_0/ports/1/counters/link_downed").write_text("N/A")
    assert not {"symbol_error", "link_downed"} & set(read_ports(tmp_path)["mlx5_0"])


def test_the_judge_understands_what_is_told(tmp_path):
    infiniband(tmp_path, "mlx5_0")
    judge = Judge("n1", "boot-1")
    judge.observe(HostSample(at=100.0, node="n1", devices=read_ports(tmp_path)), 100.0)
    infiniband(tmp_path, "mlx5_0", state="1: DOWN", phys="2: Polling", link_downed=4)
    items = judge.observe(HostSample(at=110.0, node="n1", devices=read_ports(tmp_path)), 110.0)
    found = {(item.event.code, item.event.device) for item in items if isinstance(item, EventItem)}
    assert found == {("nic_down", "nic:mlx5_0"), ("nic_flap", "nic:mlx5_0")}
