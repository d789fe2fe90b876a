"""The versions board: what runs where, and what has drifted from its pool."""

from dashboards.board import Panels, assemble, new_board
from dashboards.panels import GREEN, HALF, NONE, QUARTER, WIDE, YELLOW, Query, lines, number, rows

UID = "corral-versions"


def board() -> bytes:
    """The board's JSON."""
    made = new_board(
        UID, "Corral / Versions", "Drivers, boards and our own programs: what runs where, and what drifted."
    )
    return assemble(made, (("Drift", _drift()), ("Drivers and boards", _gpus()), ("Corral's own programs", _own())), ())


def _drift() -> Panels:
    return (
        number(
            "Nodes that have drifted",
            "Nodes with another driver, VBIOS or firmware than their pool. Good: 0; `corral versions` shows the"
            " matrix.",
            Query(f'sum(corral_conditions_open{{code="version_drift"}}) {NONE}', "drifted"),
            "none",
            steps=((None, GREEN), (1, YELLOW)),
        ),
        number(
            "Library and driver differ",
            "Nodes on which a driver was changed under running programs: they need a boot. Good: 0.",
            Query(f'sum(corral_conditions_open{{code="driver_library_mismatch"}}) {NONE}', "differ"),
            "none",
            steps=((None, GREEN), (1, YELLOW)),
        ),
        lines(
            "Nodes by driver",
            "Good: one colour, or two during a rollout.",
            (Query("count by (driver) (corral_agent_node_info)", "{{driver}}"),),
            "none",
            stacked=True,
            width=2 * QUARTER,
        ),
    )


def _gpus() -> Panels:
    return (
        rows(
            "Nodes and their drivers",
            "Good: one version a pool.",
            Query("corral_agent_node_info", "{{node}}"),
            {"node": "Node", "driver": "Driver", "level": "Level", "virtual": "Virtual"},
            width=HALF,
            link=("Open this node", "/d/corral-node?var-node=${__data.fields.Node}"),
        ),
        rows(
            "GPUs by board",
            "How many of each board are seen. Good: what was bought.",
            Query("count by (name) (corral_gpu_info)", "{{name}}"),
            {"name": "Board"},
            value="GPUs",
            width=HALF,
        ),
    )


def _own() -> Panels:
    programs = " or ".join(
        f'label_replace(count by (version) (corral_{name}_build_info), "program", "{name}", "", "")'
        for name in ("controller", "agent", "engine", "gateway")
    )
    return (
        rows(
            "Versions of Corral",
            "How many of each program run in which version. Good: one version each, neighbours during an upgrade.",
            Query(programs, "{{program}}"),
            {"program": "Program", "version": "Version"},
            value="Processes",
            width=WIDE,
        ),
    )
