import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from agent.export import CRITICAL_XIDS, Export
from agent.judge import Judge
from agent.latest import STALE_S, Latest
from agent.sources.health import Health
from tests.agent.made import NODE, events, fallen, inventory, replica, sample, uuid, xid
from vocab.metrics.agent import DEMANDED, GPU, READINGS, SELF
from vocab.metrics.dcgm import DCGM, XID
from vocab.observations import GpuProcess
from vocab.readings import LinkReadings, Readings
from vocab.states import Level

FULL = Readings(**dict.fromkeys(Readings.__struct_fields__, 1))


class Scrape:
    def __init__(self, **options):
        self.judge, self.now, self.wide = Judge(NODE), 10.0, False
        self.latest = Latest(Level.OBSERVE, "1", "http://here")
        self.export = Export(self.latest, lambda: self.now, **options)
        self.take(inventory(0.0))

    def take(self, *observations):
        for observation in observations:
            self.export.took(observation, 0.001)
            items = self.judge.observe(observation, observation.at)
            self.latest.take(observation, self.judge.scene, observation.at)
            for event in events(items):
                self.export.judged(event)

    def tick(self, now):
        for event in events(self.judge.tick(now)):
            self.export.judged(event)

    def series(self):
        body, _ = self.export.exposition.render(wide=self.wide)
        families = text_string_to_metric_families(body.decode())
        return {(s.name, *sorted(s.labels.items())): s.value for family in families for s in family.samples}

    def value(self, name, **labels):
        return self.series().get((name, *sorted(labels.items())))


def full(at, index):
    links = {str(n): LinkReadings(**dict.fromkeys(LinkReadings.__struct_fields__, 1)) for n in range(18)}
    read = sample(at, index)
    return type(read)(
        at=at,
        node=NODE,
        gpu=uuid(index),
        readings=FULL,
        links=links,
        processes=(GpuProcess(pid=1),),
        source="nvml",
        instances={"1/0": FULL},
    )


def test_a_reading_is_there_under_its_name_and_uuid():
    scrape = Scrape()
    scrape.take(sample(9.0, 3, utilization_ratio=0.97, sm_active_ratio=0.4, power_w=350.5))
    assert scrape.value("corral_gpu_utilization_ratio", gpu=uuid(3)) == 0.97
    assert scrape.value("corral_gpu_sm_active_ratio", gpu=uuid(3)) == 0.4
    assert scrape.value("corral_gpu_power_watts", gpu=uuid(3)) == 350.5


def test_what_an_engine_says_of_itself_is_there_as_it_says_it_and_nothing_else():
    scrape = Scrape()
    scrape.take(replica(9.0, step=70, requests_ok=3918, requests_failed=None, running=2))
    assert scrape.value("corral_agent_engine_steps_total", replica="r1") == 70
    assert scrape.value("corral_agent_engine_requests_ok_total", replica="r1") == 3918
    assert scrape.value("corral_agent_engine_running_requests", replica="r1") == 2
    assert scrape.value("corral_agent_engine_requests_failed_total", replica="r1") is None, "unknown, not 0"
    scrape.now = 9.0 + STALE_S + 1
    assert scrape.value("corral_agent_engine_steps_total", replica="r1") is None, "nor what was said long ago"
    scrape.take(replica(30.0, step=71))
    scrape.take(replica(31.0, phase="stopped"))
    scrape.now = 31.0
    assert scrape.value("corral_agent_engine_steps_total", replica="r1") is None


def test_what_a_gpu_does_is_one_word_and_none_where_its_counters_do_not_say():
    scrape = Scrape()
    scrape.take(sample(9.0, 3, utilization_ratio=1.0, sm_active_ratio=0.5, dram_active_ratio=0.75))
    scrape.take(sample(9.0, 4, utilization_ratio=1.0))
    assert scrape.value("corral_gpu_activity", gpu=uuid(3), doing="memory-bound", by="") == 1
    assert scrape.value("corral_gpu_activity_ratio", gpu=uuid(3)) == 0.75
    assert scrape.value("corral_gpu_activity_ratio", gpu=uuid(4)) is None


def test_a_missing_reading_has_no_series_and_is_never_zero():
    scrape = Scrape()
    scrape.take(sample(9.0, 3, power_w=70.0))
    assert scrape.value("corral_gpu_utilization_ratio", gpu=uuid(3)) is None


def test_old_readings_vanish_and_the_gpu_is_not_up():
    scrape = Scrape()
    scrape.take(sample(9.0, 3, power_w=70.0))
    assert scrape.value("corral_gpu_up", gpu=uuid(3)) == 1
    scrape.now = 9.0 + STALE_S + 0.1
    assert scrape.value("corral_gpu_power_watts", gpu=uuid(3)) is None
    assert scrape.value("corral_gpu_up", gpu=uuid(3)) == 0
    assert scrape.value("corral_gpu_last_read_timestamp_seconds", gpu=uuid(3)) == 9.0


def test_a_lost_gpu_is_not_up():
    scrape = Scrape()
    scrape.take(sample(8.0, 3, power_w=70.0), sample(9.0, 3, error="GPU_IS_LOST"))
    assert scrape.value("corral_gpu_up", gpu=uuid(3)) == 0


def test_index_name_and_address_stand_on_the_info_metric_alone():
    scrape = Scrape()
    scrape.take(*(full(9.0, index) for index in range(8)))
    for name, *labels in scrape.series():
        if name != "corral_gpu_info" and name.startswith("corral_gpu_"):
            assert {label for label, _ in labels} <= {"gpu", "xid", "doing", "by"}
    info = [dict(labels) for name, *labels in scrape.series() if name == "corral_gpu_info"]
    assert {i["index"] for i in info} == set("01234567")
    assert {i["virtual"] for i in info} == {"false"}


def test_at_most_75_series_a_gpu_with_every_reading_there():
    scrape = Scrape()
    scrape.take(*(full(9.0, index) for index in range(8)))
    mine = [key for key in scrape.series() if ("gpu", uuid(0)) in key]
    assert len(READINGS) < len(mine) <= 75


def test_critical_xids_stand_at_zero_from_the_start():
    scrape = Scrape()
    assert "79" in CRITICAL_XIDS
    for number in CRITICAL_XIDS:
        assert scrape.value("corral_gpu_xid_errors_total", gpu=uuid(0), xid=number) == 0
    assert scrape.value("corral_gpu_xids_total", gpu=uuid(0)) == 0


def test_every_xid_counts_and_none_hides_another():
    scrape = Scrape()
    scrape.take(
        xid(1.0, 62, "223b6a65 00002100", seq=1),
        xid(1.2, 45, "pid=9, name=a, Ch 00000001", seq=2),
        xid(2.0, 45, "pid=9, name=a, Ch 00000002", seq=3),
    )
    scrape.tick(20.0)
    assert scrape.value("corral_gpu_xid_errors_total", gpu=uuid(0), xid="62") == 1
    assert scrape.value("corral_gpu_xid_errors_total", gpu=uuid(0), xid="45") == 2
    assert scrape.value("corral_gpu_xids_total", gpu=uuid(0)) == 3


def test_injected_xids_are_counted_apart():
    scrape = Scrape()
    scrape.take(fallen(1.0, facility=1))
    assert scrape.value("corral_gpu_xids_total", gpu=uuid(0)) == 0
    assert scrape.value("corral_agent_injected_events_total") == 1


def test_a_restart_invents_no_increase():
    scrape = Scrape()
    for n in range(5):
        scrape.take(fallen(1.0 + n / 10, seq=n))
    judge = Judge.restore(scrape.judge.snapshot())
    again = Scrape()
    again.judge, again.export = judge, Export(again.latest, lambda: 10.0, judge.open_counts())
    again.take(inventory(2.0))
    again.tick(20.0)
    assert again.value("corral_gpu_xids_total", gpu=uuid(0)) == 0


def test_nothing_is_exported_that_is_not_in_the_catalogue():
    scrape = Scrape()
    scrape.take(full(9.0, 0), fallen(1.0))
    rows = {row.name for row in (*SELF, *GPU)}
    bare = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name, *_ in scrape.series()}
    assert bare <= rows
    assert {row.name for row in GPU} <= {name for name, *_ in scrape.series()}


def test_a_node_of_eight_has_at_most_600_series():
    scrape = Scrape()
    scrape.take(*(full(9.0, index) for index in range(8)))
    assert len(scrape.series()) <= 600


def test_links_are_shown_as_sum_and_worst_and_one_by_one_on_demand():
    scrape = Scrape()
    scrape.take(full(9.0, 0))
    assert scrape.value("corral_gpu_nvlink_errors_total", gpu=uuid(0)) == 18 * 3
    assert scrape.value("corral_gpu_nvlink_errors_worst", gpu=uuid(0)) == 3
    assert scrape.value("corral_gpu_nvlink_up", gpu=uuid(0), link="17") is None
    scrape.wide = True
    assert scrape.value("corral_gpu_nvlink_up", gpu=uuid(0), link="17") == 1


def test_links_that_tell_nothing_are_not_without_errors():
    scrape = Scrape()
    read = full(9.0, 0)
    scrape.take(type(read)(at=9.0, node=NODE, gpu=uuid(0), readings=FULL, links={"0": LinkReadings()}, source="nvml"))
    assert scrape.value("corral_gpu_nvlink_errors_total", gpu=uuid(0)) is None
    assert scrape.value("corral_gpu_nvlinks_down", gpu=uuid(0)) is None


def test_the_activity_of_each_mig_instance_is_its_own_and_the_parent_has_none():
    scrape = Scrape()
    scrape.wide = True
    read = sample(9.0, 0)
    instances = {"1/0": Readings(graphics_active_ratio=0.97), "2/0": Readings(graphics_active_ratio=0.02)}
    scrape.take(type(read)(at=9.0, node=NODE, gpu=uuid(0), readings=Readings(), instances=instances, source="dcgm"))
    name = "corral_gpu_instance_graphics_active_ratio"
    assert [scrape.value(name, gpu=uuid(0), gi=gi, ci="0") for gi in ("1", "2")] == [0.97, 0.02]
    assert scrape.value("corral_gpu_graphics_active_ratio", gpu=uuid(0)) is None
    assert scrape.value("corral_gpu_utilization_ratio", gpu=uuid(0)) is None


@pytest.mark.parametrize("figure", [16721.0, 24531.0, 12129.0, 0.0])
def test_a_rate_that_is_declared_a_counter_is_a_gauge_as_it_is(figure):
    scrape = Scrape()
    scrape.wide = True
    scrape.take(sample(9.0, 0, nvlink_megabytes_per_s=figure))
    assert scrape.value("corral_gpu_nvlink_megabytes_per_second", gpu=uuid(0)) == figure


def test_everything_is_there_on_demand():
    scrape = Scrape()
    scrape.wide = True
    scrape.take(full(9.0, 0))
    assert {row.name for row in DEMANDED} <= {name for name, *_ in scrape.series()}
    assert scrape.value("corral_gpu_instance_memory_used_bytes", gpu=uuid(0), gi="1", ci="0") == 1


def test_the_names_of_dcgm_exporter_come_with_its_labels_and_units():
    scrape = Scrape(dcgm_names=True)
    scrape.take(sample(9.0, 3, temperature_c=41.0, power_w=350.5, sm_clock_hz=1.98e9, memory_used_bytes=3 * 2**20))
    found = {name: (dict(labels), value) for (name, *labels), value in scrape.series().items() if "DCGM" in name}
    labels, value = found["DCGM_FI_DEV_GPU_TEMP"]
    assert value == 41
    assert (labels["gpu"], labels["UUID"], labels["device"]) == ("3", uuid(3), "nvidia3")
    assert {"modelName", "Hostname", "pci_bus_id", "DCGM_FI_DRIVER_VERSION"} <= set(labels)
    assert found["DCGM_FI_DEV_SM_CLOCK"][1] == 1980
    assert found["DCGM_FI_DEV_FB_USED"][1] == 3
    assert "DCGM_FI_DEV_GPU_UTIL" not in found


def test_the_last_xid_is_under_dcgm_exporters_name_too():
    scrape = Scrape(dcgm_names=True)
    scrape.take(fallen(1.0))
    values = {dict(labels)["UUID"]: value for (name, *labels), value in scrape.series().items() if name == XID.name}
    assert values[uuid(0)] == 79
    assert values[uuid(1)] == 0


def test_without_being_asked_there_is_no_foreign_name():
    scrape = Scrape()
    scrape.take(full(9.0, 0))
    assert not any(name.startswith("DCGM") for name, *_ in scrape.series())
    assert len(DCGM) > 25


def test_reads_are_counted_as_whole_partial_or_failed():
    scrape = Scrape()
    scrape.take(sample(9.0, 0, power_w=1.0), sample(9.5, 1, error="GPU_IS_LOST"))
    assert scrape.value("corral_agent_reads_total", source="nvml", result="whole") == 1
    assert scrape.value("corral_agent_reads_total", source="nvml", result="failed") == 1
    assert scrape.value("corral_agent_source_last_success_timestamp_seconds", source="nvml") == scrape.now


class Reading:
    name = "nvml"

    def __init__(self):
        self.health = Health(starts=1, read_s=0.02, call_s=0.0)


def test_the_health_of_a_child_is_shown():
    scrape, source = Scrape(), Reading()
    scrape.export.watch([source, object()])
    scrape.export.refresh()
    assert scrape.value("corral_agent_child_restarts_total", source="nvml") == 0
    assert scrape.value("corral_agent_read_seconds", source="nvml") == 0.02
    source.health.starts, source.health.call_s = 3, 7.5
    scrape.export.refresh()
    assert scrape.value("corral_agent_child_restarts_total", source="nvml") == 2
    assert scrape.value("corral_agent_call_seconds", source="nvml") == 7.5


def test_a_hundred_times_other_pods_and_processes_bring_no_more_series():
    scrape = Scrape()
    scrape.take(*(full(9.0, index) for index in range(8)))
    before = set(scrape.series())
    for pod in range(100):
        process = GpuProcess(pid=1000 + pod, used_bytes=2**30)
        for index in range(8):
            read = full(9.0, index)
            scrape.take(msgspec.structs.replace(read, processes=(process,)))
        scrape.take(replica(9.0, replica=f"chat-{pod}", deployment="chat", gpus=(uuid(0),)))
    grown = {name for name, *_ in set(scrape.series()) - before}
    assert {name for name in grown if name.startswith("corral_gpu_")} == set()
    assert len(scrape.series()) <= len(before) + 2  # the kind of observation, once
