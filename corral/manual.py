"""What the help of every command ends with: examples, and the exit codes that it can have. One table for all."""

import click

# Of every command. 130 is the shell's: ended by Ctrl-C.
CODES = {0: "done", 2: "wrong usage or input", 3: "unreachable", 4: "refused"}

EXAMPLES: dict[str, tuple[str, ...]] = {
    "up": ("corral up", "corral up --virtual 8xA100-SXM --level cordon"),
    "status": ("corral status", "corral status --json | jq .counts"),
    "top": ("corral top", "corral top --local --once"),
    "events": ("corral events --gpu gpu-07/3", "corral events --follow --json", "corral events --local"),
    "versions": ("corral versions",),
    "explain": ("corral explain gpu-07/3", "corral explain 3 --local"),
    "card": ("corral card 1652023001234", "corral card gpu-07/3"),
    "lemons": ("corral lemons --all",),
    "hold": ('corral hold gpu-07/3 --reason "fan noise"', 'corral hold --node gpu-07 --reason "rack move" --dry-run'),
    "lift": ("corral lift h-3f0c… --reason done",),
    "drain": ('corral drain gpu-07/3 --reason "fan noise"', "corral drain --replica chat-2 --reason test --dry-run"),
    "release": ('corral release gpu-07/3 --reason "board replaced"',),
    "handover": ("corral handover", "corral handover --since 8h"),
    "maintain": (
        'corral maintain gpu-07 --until 17:30 --reason "new fans"',
        'corral maintain gpu-07 --for 3h --reason "new fans" --dry-run',
        "corral maintain gpu-07 --end --reason done",
    ),
    "pause": ('corral pause --reason "something is wrong"', "corral pause --pool test --reason drill"),
    "resume": ("corral resume", "corral resume --node gpu-07"),
    "bundle": ("corral bundle i-3f0c… -o ticket-4711.tar", "corral bundle --list"),
    "undo": ("corral undo --since 10m --dry-run", "corral undo --since 10m --rule xid:48"),
    "discard": ('corral discard --reason "the probe was wrong"',),
    "approve": ("corral approve a-91ab… --dry-run", 'corral approve a-91ab… --reason "night shift"'),
    "token create": ("corral token create --role operator --name ada --out ada.token",),
    "token list": ("corral token list",),
    "token revoke": ("corral token revoke t-5c21… --reason lost",),
    "enroll": ("corral enroll --token-file /root/once.token --owner corral-agent",),
    "incident list": ("corral incident list --all",),
    "incident show": ("corral incident show i-3f0c…",),
    "incident close": ('corral incident close i-3f0c… --verdict wrong --reason "a bad probe"',),
    "runbook": ("corral runbook CorralPcie", "corral runbook xid:79"),
    "policy check": ("corral policy check policy.toml",),
    "policy diff": ("corral policy diff policy.toml",),
    "policy test": ("corral policy test --policy policy.toml incident.jsonl",),
    "policy adopt": ('corral policy adopt policy.toml --reason "gentler on Xid 48"',),
    "policy revert": ('corral policy revert --reason "too gentle"',),
    "policy history": ("corral policy history",),
    "policy status": ("corral policy status",),
    "drill xid": ("corral drill xid 79 --gpu 0",),
    "drill dcgm": ("corral drill dcgm 230 79 --gpu 0",),
    "drill thermal": ("corral drill thermal --gpu 0",),
    "drill ecc": ("corral drill ecc --gpu 0",),
    "drill corrupt": ("corral drill corrupt --gpu 0",),
    "drill pcie": ("corral drill pcie --gpu 0",),
    "drill remap": ("corral drill remap --gpu 0",),
    "drill clear": ("corral drill clear --gpu 0",),
    "survey": (
        "corral survey /var/log/gpu-nodes -o survey.html",
        "corral survey --ssh gpu-01,gpu-02 --ssh @hosts.txt --days 7",
        "corral survey --prometheus http://prometheus:9090 logs/ -o survey.md",
    ),
    "scan": ("corral scan /var/log/kern.log*", "dmesg | corral scan -"),
    "doctor": ("sudo -u corral-agent corral doctor",),
    "plan": ("corral plan llama-3-70b --gpu H100-SXM --users 100", "corral plan ./my-model --gpu L40S --gpu-hour 1.2"),
    "diag": ("corral diag gpu-07/3", "corral diag gpu-07/3 --grade medium"),
    "record": ("corral record --agent http://gpu-07:7410 > incident.jsonl",),
    "backup": ("corral backup /backup/corral.gz",),
    "restore": ("corral restore /backup/corral.gz",),
    "replay": ("corral replay incident.jsonl", "corral replay --policy changed.toml --json incident.jsonl"),
    "completion": (
        "corral completion bash > /etc/bash_completion.d/corral",
        "corral completion fish > ~/.config/fish/completions/corral.fish",
    ),
}
ONES: dict[str, str] = {  # what 1 says, of those that can say it; all others never end with it
    "status": "a GPU is lost, failed or held",
    "versions": "a version drifts or is known to be bad",
    "handover": "something waits for a person",
    "undo": "nothing was there to undo",
    "policy diff": "they differ",
    "policy test": "they differ",
    "policy status": "a rule does not act",
    "survey": "something has to leave service",
    "scan": "an error or critical event",
    "doctor": "something is missing",
    "plan": "it does not fit",
    "diag": "a problem",
}


def told(path: str, command: click.Command) -> click.Command:
    """The command, with the end of its help; a group with those of its own."""
    if isinstance(command, click.Group):
        for name, each in command.commands.items():
            told(f"{path} {name}", each)
    elif command.epilog is None:
        command.epilog = epilog(path)
    return command


def epilog(path: str) -> str:
    """Examples and exit codes, in click's form: lines after a backspace stay as they are."""
    lines = [f"{'Example:' if place == 0 else '':8} {words}" for place, words in enumerate(EXAMPLES.get(path, ()))]
    return "\n".join(["\b", *lines, "", f"Exit codes: {codes(path)}."])


def codes(path: str) -> str:
    """Its exit codes in words."""
    found = CODES | ({1: ONES[path]} if path in ONES else {})
    return ", ".join(f"{code} {words}" for code, words in sorted(found.items()))
