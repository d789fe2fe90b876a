"""Alerts about the fleet as a whole: what Corral decided, what it waits for, what people have forgotten."""

from alerts.alert import Alert, Group, Page, Severity, conditions

PAGE, TICKET = Severity.PAGE, Severity.TICKET
OUT = "failed|lost|unknown|cordoned|fenced|draining|repairing|validating|probation|quarantined"
BLIND = "count(last_over_time(corral:node_blind[1m]))"
KNOWN = "count(max by (node) (last_over_time(corral_node_info[1h])))"


def _gpus(states: str) -> str:
    return f'sum(max by (state) (last_over_time(corral_gpus{{state=~"{states}"}}[2m])))'


def _older(of: str, state: str, age: str) -> str:
    name = f'corral_oldest_action_timestamp_seconds{{of=~"{of}",state=~"{state}"}}'
    return f"time() - min by (of) (last_over_time({name}[2m])) > <{age}>"


def _moves(state: str) -> str:
    kinds = 'of=~"reset_gpu|reboot_node|power_cycle"'
    return f'sum(increase(corral_action_moves_total{{{kinds},state=~"{state}"}}[1h]))'


GROUP = Group(
    subject="fleet",
    head="What Corral decides: when it doubts itself, and what waits for too long. Series come from the controller.",
    rules=(
        # Either many GPUs are sick, or what judges them is. Corral holds no more of them until a person looks.
        Alert(
            name="CorralTooMuchSick",
            severity=PAGE,
            expr='max(last_over_time(corral_conditions_open{code="too_much_sick"}[2m])) > 0',
            keep="2m",
            summary="More looks sick than Corral will take out of service by itself",
            says=Page(
                users="perhaps errors: faulty GPUs may be taking work.",
                done="it held and drained what its budget allows; the rest is only written down.",
                waits="you: either the fleet is sick, or one probe is wrong on all of it.",
                command="corral status",
                sleep="not until you know which; deployments at their floor are safe from Corral itself.",
            ),
        ),
        Alert(
            name="CorralRuleDemoted",
            severity=PAGE,
            expr="max by (rule) (last_over_time(corral_rule_demoted[2m])) > 0",
            keep="2m",
            summary="Corral no longer acts on {{ $labels.rule }}: that rule fell back to shadow",
            says=Page(
                users="nothing yet; GPUs with this fault keep their replicas.",
                done="the rule fired on too many GPUs within an hour, or people called too many of its holds wrong, so "
                "it holds and repairs nothing any more.",
                waits='your look, then: corral policy adopt --reason "..."',
                command="corral policy status",
                sleep="until the morning if no deployment is below its floor.",
            ),
        ),
        # It ends before what keeps it back ends (CorralNodesBlind), or it would page when all is over.
        Alert(
            name="CorralCapacityLost",
            severity=PAGE,
            expr=f"{_gpus(OUT)} > 0.1 * {_gpus('.+')}\nand\n{_gpus(OUT)} >= 16",
            wait="10m",
            keep="2m",
            summary="{{ $value }} GPUs, more than a tenth of the fleet, are out of service",
            says=Page(
                users="longer waits; errors where a deployment is below its floor.",
                done="it holds, drains and repairs within its budgets, and starts replacements where GPUs are free.",
                waits="the common cause: power, cooling, a switch, a driver.",
                command="corral status",
                sleep="not until you know the cause: what took a tenth can take the rest.",
            ),
        ),
        # All of it, or at least three nodes and one in twenty: then it is no single agent.
        Alert(
            name="CorralNodesBlind",
            severity=PAGE,
            expr=f"{BLIND} >= 0.5 * {KNOWN}\nor\n({BLIND} >= 3 and {BLIND} > 0.05 * {KNOWN})",
            wait="3m",
            keep="5m",
            summary="Corral is blind on {{ $value }} nodes",
            says=Page(
                users="nothing by this alone: replicas go on serving.",
                done="it shows those GPUs as unknown, starts nothing there, and holds or reboots nothing for it.",
                waits="agents that answer: the network, a bad roll-out, or nodes that have lost their power.",
                command="corral status",
                sleep="an hour if all deployments have their floor: faults there are not seen until then.",
            ),
        ),
        Alert(
            name="CorralRepairsFail",
            severity=PAGE,
            expr=f"{_moves('failed|timed_out')} >= 5\nand\n{_moves('failed|timed_out')} > 2 * {_moves('done')}",
            keep="15m",
            summary="{{ $value | humanize }} repairs have failed within an hour, and hardly any has helped",
            says=Page(
                users="nothing by this alone; capacity shrinks with each try.",
                done="it reset or rebooted in vain, with growing pauses, up to its attempts.",
                waits="you: the fault is another one than it takes it for, or its hands are broken.",
                command='corral pause --reason "repairs fail"',
                sleep="until the morning once it is paused.",
            ),
        ),
        Alert(
            name="CorralQuarantined",
            severity=TICKET,
            expr=_gpus("quarantined") + " > 0",
            wait="15m",
            keep="5m",
            summary="{{ $value }} GPUs are in quarantine and wait for a person",
            says="No repair of Corral's is left for them. `corral status` names them, `corral bundle GPU` packs the "
            "evidence for the vendor, `corral release GPU --reason WHY` puts one back after the exchange.",
        ),
        Alert(
            name="CorralPersonNeeded",
            severity=TICKET,
            expr="max(last_over_time(corral_incidents_halted[2m])) > 0",
            wait="30m",
            keep="5m",
            summary="{{ $value }} incidents do not go on without a person",
            says="`corral incident list` shows them, `corral incident show ID` what each waits for.",
        ),
        Alert(
            name="CorralRepairWaits",
            severity=TICKET,
            expr='max by (awaits) (last_over_time(corral_repairs_waiting{awaits="person"}[2m])) > 0',
            wait="1h",
            keep="5m",
            summary="{{ $value }} repairs wait for an approval or for something that must end first",
            says="`corral status` says what each waits for; `corral approve ACTION` lets one go on.",
        ),
        Alert(
            name="CorralBudgetExhausted",
            severity=TICKET,
            expr='max by (awaits) (last_over_time(corral_repairs_waiting{awaits="budget"}[2m])) > 0',
            wait="1h",
            keep="5m",
            summary="{{ $value }} repairs have waited an hour for room in a budget",
            says="Too many at once, or the deployments have nothing to spare. `corral status` names the budget; "
            "`corral policy status` shows its limits.",
        ),
        Alert(
            name="CorralDrainStuck",
            severity=TICKET,
            expr=_older("drain", "ordered|running", "1h"),
            wait="1m",
            keep="5m",
            summary="A drain has not ended for an hour",
            says="Its requests do not end, or its node does not obey. `corral status` names it; "
            "`corral drain GPU --now --reason WHY` ends its requests with an error.",
        ),
        Alert(
            name="CorralRepairStuck",
            severity=TICKET,
            expr=_older("reset_gpu|reboot_node|power_cycle|validate", "ordered|running", "1h"),
            wait="1m",
            keep="5m",
            summary="{{ $labels.of }} has not ended for an hour",
            says="The node has not come back, or its agent cannot say so. `corral status` names it; look at the node's "
            "console.",
        ),
        # An hour is longer than any look at what went wrong; while a pause stands, sick GPUs keep their work.
        Alert(
            name="CorralPaused",
            severity=TICKET,
            expr="max by (scope) (last_over_time(corral_pauses[2m])) > 0",
            wait="1h",
            keep="2m",
            summary="Automation has been paused for an hour ({{ $labels.scope }})",
            says="{{ $value }} pauses of this kind stand: nothing is fenced, held, drained or repaired there. "
            "`corral status` names each with its reason and with what ends it.",
        ),
        # An upgrade brought rules that nobody has adopted; new ones do nothing, changed ones act as they were.
        Alert(
            name="CorralRulesNotAdopted",
            severity=TICKET,
            expr="count(max by (rule) (last_over_time(corral_rule_shadowed[2m])) > 0) > 0",
            wait="1h",
            keep="2m",
            summary="{{ $value }} new or changed rules wait to be adopted",
            says="An upgrade brought them: new ones do nothing, changed ones act as they were adopted. What they would "
            'do is shown. Look at `corral policy diff`, then `corral policy adopt --reason "..."` lets them act.',
        ),
        # A reason to look: nothing is held for it.
        Alert(
            name="CorralLemons",
            severity=TICKET,
            expr="max by (board) (last_over_time(corral_lemons[2m])) > 0",
            wait="1h",
            keep="2m",
            summary="{{ $value }} cards of {{ $labels.board }} fail far more often than others of that board",
            says="`corral lemons` names them and says why; `corral card SERIAL` has the history of one. Nothing is "
            "held for it.",
        ),
        # A hold that nobody ends is capacity that nobody has.
        Alert(
            name="CorralHoldForgotten",
            severity=TICKET,
            expr="min by (owner) (last_over_time(corral_oldest_hold_timestamp_seconds[2m])) < time() - <1d>",
            keep="2m",
            summary="A hold of {{ $labels.owner }} is older than a day",
            says="It stands since {{ $value | humanizeTimestamp }}. Each hold says what ends it: `corral status` lists "
            "them, and `corral explain GPU` says what it waits for.",
        ),
        # What is held there is not closed in Slurm or Kubernetes, and repairs on their nodes wait.
        Alert(
            name="CorralManagerUnreachable",
            severity=TICKET,
            expr="max by (manager) (max_over_time(corral_manager_up[2m])) == 0",
            wait="5m",
            summary="Corral cannot reach {{ $labels.manager }}",
            says="Nodes are not closed or given back there, and no repair begins on its nodes, until it answers; then "
            "all that waits is done. `corral status` says why it does not answer.",
        ),
        # A GPU that Corral holds is on a node that another tool, or a person, has in hand.
        Alert(
            name="CorralOtherRemediator",
            severity=TICKET,
            expr=conditions("other_remediator"),
            wait="10m",
            summary="Corral waits on {{ $labels.node }} for somebody else who is at work there",
            says="Another remediator's mark, or a drain or cordon that Corral did not set, stands on a node with a "
            "held GPU. Corral closes, evicts and repairs nothing there. `corral status` names the mark.",
        ),
    ),
)
