import msgspec
import pytest

from agent.judge import Judge
from tests.agent.made import (
    NODE,
    cleared,
    codes,
    events,
    fallen,
    inventory,
    pci,
    record,
    replica,
    sample,
    source,
    uuid,
    xid,
)  # fmt: skip
from vocab.errors import InputError
from vocab.events import Flag, Recovery, Severity
from vocab.observations import Check, Exit, LogLine, ProcessSeen

APP = "pid={pid}, name=app, Uncontained: LTC TAG (0xA, 0xB). RST: Yes, D-RST: No"


class Bench:
    def __init__(self, **first):
        self.judge, self.now = Judge(NODE), 0.0
        self.see(inventory(0.0, **first))

    def see(self, *observations):
        items = []
        for observation in observations:
            items += self.at(observation.at)
            items += self.judge.observe(observation, observation.at)
        return items

    def at(self, now):
        items = []
        while (due := self.judge.next_deadline()) is not None and due <= now:
            items += self.judge.tick(max(due, self.now))
            self.now = max(due, self.now)
        self.now = max(now, self.now)
        return items


def test_the_first_event_of_a_kind_goes_out_at_once_with_its_evidence():
    (event,) = events(Bench().see(fallen(5.0, 2, seq=3)))
    assert (event.code, event.rev, event.count, event.gpu) == ("xid:79", 1, 1, uuid(2))
    assert (event.severity, event.recovery, event.scope) == (Severity.CRITICAL, Recovery.REBOOT_NODE, "gpu")
    assert event.at == event.first_at == "1970-01-01T00:00:05.000000Z"
    assert event.evidence[0].line.startswith("NVRM: Xid (PCI:0000:12:00): 79")


def test_the_same_log_read_twice_names_the_same_events():
    log = [fallen(5.0, 2, seq=3), xid(6.0, 94, "pid=9, name=a, Contained: CE User Channel (0x9).", seq=4)]
    assert {e.id for e in events(Bench().see(*log))} == {e.id for e in events(Bench().see(*log))}


def test_repeats_fold_into_one_event_with_an_exact_count_and_few_revisions():
    bench, sent = Bench(), []
    for n in range(37 * 60):
        sent += bench.see(xid(n / 37, 95, APP.format(pid=7), seq=n))
    sent += bench.at(200.0)
    found = events(sent)
    assert {e.id for e in found} == {found[0].id}
    assert found[-1].count == 37 * 60
    assert [e.rev for e in found] == list(range(1, len(found) + 1))
    assert len(found) <= 8
    assert Flag.STORM in found[-1].flags
    assert len(found[-1].evidence) <= 20


def test_another_process_is_another_event():
    found = events(Bench().see(xid(1.0, 95, APP.format(pid=7)), xid(1.0, 95, APP.format(pid=8))))
    assert [(e.pid, e.rev) for e in found] == [(7, 1), (8, 1)]


def test_a_repeat_after_a_quiet_minute_is_a_new_event():
    first, second = events(Bench().see(fallen(1.0, seq=1), fallen(62.0, seq=2)))
    assert first.id != second.id


def test_after_a_reboot_the_same_fault_is_a_new_event():
    bench = Bench()
    first = events(bench.see(fallen(1.0, seq=1)))[0]
    bench.see(inventory(10.0, boot_id="boot-2", boot_at=9.0))
    second = events(bench.see(fallen(11.0, seq=1)))[0]
    assert first.id != second.id
    assert second.boot_id == "boot-2"


def test_escalation_goes_out_at_once():
    bench = Bench()
    hot = {"temperature_c": 92.0, "slowdown_c": 87.0}
    masks = [0x20, 0x20, 0x20, 0x40]
    found = events(bench.see(*(sample(t, clock_reasons=mask, **hot) for t, mask in enumerate(masks))))
    assert [(e.rev, e.severity) for e in found] == [(1, Severity.WARNING), (2, Severity.ERROR)]


def test_a_lost_read_after_an_xid_79_is_secondary_to_it():
    bench = Bench()
    root = events(bench.see(fallen(5.0, 2)))[0]
    (lost,) = events(bench.see(sample(6.0, 2, error="GPU_IS_LOST")))
    assert (lost.code, lost.cause) == ("gpu_lost", root.id)


def test_a_gpu_missing_minutes_after_its_xid_79_still_points_to_it():
    bench = Bench()
    root = events(bench.see(fallen(5.0, 2)))[0]
    found = events(bench.see(inventory(900.0, gpus=(0, 1, 3, 4, 5, 6, 7))))
    assert [e.cause for e in found if e.code == "gpu_missing"] == [root.id]


def test_channels_torn_down_after_a_fault_are_information_with_a_cause():
    bench = Bench()
    root, torn = events(bench.see(
        xid(1.0, 94, "pid=10, name=a, Contained: CE User Channel (0x9). RST: No, D-RST: No"),
        xid(1.2, 45, "pid=11, name=b, Ch 00000001"),
    ))  # fmt: skip
    assert (torn.severity, torn.recovery, torn.cause) == (Severity.INFO, Recovery.NONE, root.id)


def test_a_lone_45_is_information_until_some_seconds_have_shown_that_it_stands_alone():
    bench = Bench()
    (first,) = events(bench.see(xid(1.0, 45, "pid=11, name=b, Ch 00000001")))
    assert (first.severity, first.recovery) == (Severity.INFO, Recovery.NONE)
    (alone,) = events(bench.at(30.0))
    assert (alone.id, alone.rev) == (first.id, 2)
    assert (alone.severity, alone.recovery) == (Severity.WARNING, Recovery.INVESTIGATE)


def test_bursts_of_45_are_information_whatever_their_count():
    bench, sent = Bench(), []
    for restart in range(20):
        for channel in range(8):
            pid = 100 + restart
            sent += bench.see(xid(restart * 540.0 + channel / 10, 45, f"pid={pid}, name=b, Ch {channel:08x}"))
    sent += bench.at(20_000.0)
    found = events(sent)
    assert {e.severity for e in found} == {Severity.INFO}
    assert [e.count for e in {e.id: e for e in found}.values()] == [8] * 20
    assert found[-1].fields["why"] == "channel teardown after process exit"


@pytest.mark.parametrize(
    "ended",
    [
        ProcessSeen(at=2.0, node=NODE, pid=11, state="gone"),
        replica(2.0, exit=Exit(code=1), pids=(11,)),
        replica(2.0, phase="stopped"),
    ],
)
def test_a_single_45_beside_a_process_that_ends_does_not_stand_alone(ended):
    bench = Bench()
    sent = bench.see(xid(1.0, 45, "pid=11, name=b, Ch 00000001"), ended) + bench.at(100.0)
    assert {e.severity for e in events(sent) if e.code == "xid:45"} == {Severity.INFO}


def test_a_45_that_is_read_before_its_cause_is_judged_anew():
    bench = Bench()
    bench.see(xid(1.0, 45, "pid=11, name=b, Ch 00000001"))
    (root,) = events(bench.see(xid(1.1, 62, "223b6a65 00002100 00000000")))
    (late,) = events(bench.at(20.0))
    assert (late.code, late.cause, late.severity) == ("xid:45", root.id, Severity.INFO)


def test_an_xid_45_that_prints_its_cause_has_that_one():
    bench = Bench()
    words = "(0x021425c6 0x00000000 0x00000000 0x00000000 0x00000000 0x00000000)"
    link, _, torn = events(bench.see(
        xid(1.0, 149, f"NETIR_LINK_EVT  Fatal   XC0 i0 Link 01 {words}"),
        xid(1.0, 31, "pid=5, name=x, Ch 00000009, engmask 00000101, intr 10000000"),
        xid(1.0, 45, "pid=5, name=x, Ch 0000000c caused by previous Xid 149"),
    ))  # fmt: skip
    assert torn.cause == link.id


def test_a_replica_that_dies_on_a_failed_gpu_points_to_the_fault():
    bench = Bench()
    root = events(bench.see(fallen(1.0, 0)))[0]
    (died,) = events(bench.see(replica(3.0, phase="stopped", exit=Exit(signal=6))))
    assert (died.code, died.cause, died.gpu) == ("replica_died", root.id, None)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("failed", [False, True])
def test_a_replica_that_its_collectives_watchdog_ends_points_to_the_collective_or_to_what_lies_behind(turned, failed):
    bench = Bench()
    roots = bench.see(fallen(0.5, 0)) if failed else []
    line = (
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, NumelIn=1, "
        "NumelOut=1, Timeout(ms)=600000) ran for 600041 milliseconds before timing out."
    )
    says = LogLine(at=1.0, node=NODE, replica="r1", rank=0, line=line)
    ends = replica(1.0, phase="stopped", exit=Exit(signal=6))
    found = roots + bench.see(replica(0.8), *((ends, says) if turned else (says, ends))) + bench.at(10_000.0)
    last = {event.code: event for event in events(found)}
    assert last["replica_died"].cause == last["xid:79" if failed else "collective_timeout"].id


@pytest.mark.parametrize(
    ("end", "verdict", "points"),
    [
        (Exit(signal=6), "crashed_by_itself", True),
        (Exit(signal=15), "stopped_from_outside", True),
        (Exit(reason="OOMKilled"), "out_of_memory", False),
        (Exit(code=1, reason="out of memory"), "out_of_gpu_memory", False),
        (Exit(), "crashed_by_itself", True),
    ],
)
def test_beside_a_collective_that_ran_out_of_time_a_replica_ended_as_its_exit_says(end, verdict, points):
    line = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5, OpType=ALLREDUCE, Timeout(ms)=6)"
    says = LogLine(at=1.0, node=NODE, replica="r1", rank=0, line=f"{line} ran for 7 milliseconds before timing out.")
    found = events(Bench().see(replica(0.8), says, replica(1.5, phase="stopped", exit=end)))
    (died,) = [event for event in found if event.code == "replica_died"]
    assert (died.fields["verdict"], died.cause is not None) == (verdict, points)


def test_injected_events_are_shown_and_open_nothing():
    bench = Bench()
    (event,) = events(bench.see(fallen(1.0, 2, facility=1)))
    assert event.injected
    assert cleared(bench.see(inventory(10.0, boot_id="boot-2"))) == []
    assert bench.see(sample(11.0, 2, error="GPU_IS_LOST"))[0].event.cause is None


def test_injected_and_real_ones_never_fold():
    found = events(Bench().see(fallen(1.0, 2, facility=1, seq=1), fallen(1.0, 2, seq=2)))
    assert [(e.injected, e.count) for e in found] == [(True, 1), (False, 1)]


def test_an_unknown_address_is_scope_node():
    (event,) = events(Bench().see(record(1.0, "NVRM: Xid (PCI:0009:01:00): 79, GPU has fallen off the bus.")))
    assert (event.gpu, event.pci, event.scope) == (None, "0009:01:00", "node")
    assert event.flags == (Flag.LOOKUP_FAILED,)


def test_what_names_no_gpu_at_all_is_of_the_node():
    (event,) = events(Bench().see(Check(at=1.0, node=NODE, check="ib", result="problem", text="a slow port")))
    assert (event.code, event.gpu, event.scope) == ("check_failed", None, "node")


def test_the_text_is_that_of_the_judgement_that_stands():
    bench = Bench()
    reads = [(0, 0), (1, 1), (1, 1), (1, 1), (61, 1), (61, 1)]
    seen = [sample(10.0 * n, retired_pages_dbe=dbe, retirement_pending=wait) for n, (dbe, wait) in enumerate(reads)]
    found = [event for event in events(bench.see(*seen)) if event.code == "retired_pages"]
    assert [event.severity for event in found] == [Severity.WARNING, Severity.ERROR]
    assert found[0].text != found[1].text


def test_a_signal_clears_what_a_signal_ends():
    bench = Bench()
    bench.see(*(sample(t, clock_reasons=0x20) for t in range(3)))
    assert cleared(bench.see(*(sample(t, clock_reasons=0) for t in range(3, 7)))) == ["thermal_slowdown"]


def test_a_condition_that_returns_is_told_at_once_though_it_folds():
    bench = Bench()
    first = events(bench.see(*(sample(t, clock_reasons=0x20) for t in range(3))))[0]
    bench.see(*(sample(t, clock_reasons=0) for t in range(3, 6)))
    (again,) = events(bench.see(*(sample(t, clock_reasons=0x20) for t in range(6, 9))))
    assert (again.id, again.rev, again.count) == (first.id, 2, 2)


def test_an_answer_does_not_clear_what_only_a_reboot_ends_and_a_reboot_does():
    bench = Bench()
    bench.see(fallen(1.0, 2), sample(2.0, 2, error="GPU_IS_LOST"))
    assert cleared(bench.see(sample(3.0, 2, power_w=70.0))) == []
    assert set(cleared(bench.see(inventory(100.0, boot_id="boot-2")))) == {"xid:79", "gpu_lost"}


def test_a_reset_clears_what_it_ends_on_that_gpu_alone():
    bench = Bench()
    bench.see(sample(1.0, 0, remap_pending=1), sample(1.0, 1, remap_pending=1))
    items = bench.see(inventory(5.0, reset=(uuid(0),)))
    assert [(i.cleared.code, i.cleared.gpu, i.cleared.by) for i in items] == [("remap_pending", uuid(0), "reset")]


def test_a_lost_monitor_is_a_warning_about_the_node_and_never_about_a_gpu():
    bench = Bench()
    bench.see(source(1.0, "down", error="TIMEOUT"))
    (event,) = events(bench.at(100.0))
    assert (event.code, event.gpu, event.severity) == ("monitor_unreachable", None, Severity.WARNING)
    items = bench.see(source(101.0, "up"))
    assert [(i.cleared.code, i.cleared.name) for i in items] == [("monitor_unreachable", "nvml")]


def test_a_wall_clock_that_jumps_back_moves_no_window():
    judge = Judge(NODE)
    judge.observe(inventory(0.0), 0.0)
    first = events(judge.observe(fallen(500.0, 2, seq=1), 500.0))[0]
    judge.observe(fallen(381.0, 2, seq=2), 501.0)
    (revised,) = events(judge.tick(511.0))
    assert (revised.id, revised.count) == (first.id, 2)


def test_a_judge_restored_from_its_snapshot_goes_on_as_if_nothing_had_happened():
    log = [xid(n * 0.5, 95, APP.format(pid=n % 3), n % 4, seq=n) for n in range(100)]
    whole = Bench()
    expected = {e.id: e.count for e in events([*whole.see(*log), *whole.at(200.0)])}
    first = Bench()
    sent = first.see(*log[:60])
    second = Bench()
    second.judge = Judge.restore(first.judge.snapshot())
    assert second.judge.position == 59
    sent += [*second.see(*log), *second.at(200.0)]  # the log is read again from its start
    latest = {}
    for event in events(sent):
        assert event.rev > getattr(latest.get(event.id), "rev", 0)
        latest[event.id] = event
    assert {id_: event.count for id_, event in latest.items()} == expected


def test_a_snapshot_of_another_version_is_an_error_that_says_so():
    with pytest.raises(InputError, match="snapshot"):
        Judge.restore(b"\x93\x01\x02\x03")


def test_items_survive_the_wire():
    items = Bench().see(fallen(5.0, 2, seq=3))
    assert msgspec.json.decode(msgspec.json.encode(items), type=list[type(items[0])]) == items


def test_the_end_of_the_input_gives_the_last_counts():
    bench = Bench()
    bench.see(fallen(1.0, 2, seq=1), fallen(1.5, 2, seq=2))
    assert [e.count for e in events(bench.judge.close(2.0))] == [2]


def test_two_gpus_never_share_a_fold():
    found = events(Bench().see(fallen(1.0, 1), fallen(1.0, 2)))
    assert [(e.gpu, e.pci) for e in found] == [(uuid(1), pci(1)), (uuid(2), pci(2))]


def test_codes_come_in_causal_order():
    bench = Bench()
    bench.see(fallen(5.0, 2))
    assert codes(bench.see(sample(6.0, 2, error="GPU_IS_LOST"))) == ["gpu_lost"]


def test_the_lines_of_one_exception_are_one_event_that_explains_the_stuck_context_after_it():
    bench, unknown = Bench(), "pid='<unknown>', name=<unknown>, "
    first = events(bench.see(
        xid(1.0, 13, unknown + "Graphics SM Warp Exception on (GPC 7, TPC 6, SM 0): Illegal Instruction Parameter"),
        xid(1.0, 13, unknown + "Graphics SM Global Exception on (GPC 7, TPC 6, SM 0): Multiple Warp Errors"),
        xid(1.0, 13, unknown + "Graphics Exception: ESR 0x57b730=0xc04000b 0x57b734=0x24"),
    ))  # fmt: skip
    assert len(first) == 1
    stuck = events(bench.see(xid(6.0, 109, "pid=51234, name=main, Ch 00000008, errorString CTX SWITCH TIMEOUT")))
    assert stuck[0].cause == first[0].id
    assert [event.count for event in events(bench.at(12.0))] == [3]


def test_a_storm_of_ever_new_processes_stays_bounded_and_exact():
    bench, sent = Bench(), []
    for n in range(2000):
        sent += bench.see(xid(n / 100, 45, f"pid={n + 1}, name=a, Ch 00000001", 3, seq=n))
    sent += bench.at(200.0)
    latest = {event.id: event for event in events(sent)}
    assert len(latest) <= 40
    assert sum(event.count for event in latest.values()) == 2000
    assert any(Flag.STORM in event.flags for event in latest.values())
