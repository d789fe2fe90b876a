"""Any other server: the deployment's own command line, words that stand for themselves, never a shell.

``options.command`` is a list; {port}, {model}, {name}, {replica} and {gpus} in its words are filled in. It should
answer GET /health with 200 once it takes requests. Of its beat nothing is known: it is never called stalled.
On several nodes the same words start one process a node; {rank}, {world_size}, {leader} and {leader_port} tell them
apart, and so do CORRAL_RANK, CORRAL_WORLD_SIZE, CORRAL_LEADER and CORRAL_LEADER_PORT in their environment.
"""

from agent.adapters.adapter import Adapter, Start
from vocab.errors import ConfigError


def argv(start: Start) -> tuple[str, ...]:
    """The words with what stands in braces filled in. Raises ConfigError if there are none, or unknown braces."""
    spec, group = start.spec, start.group
    given = spec.options.get("command")
    if not isinstance(given, list | tuple) or not given or not all(isinstance(word, str) for word in given):
        raise ConfigError('options.command: give a list of words, as ["my-server", "--port", "{port}"]')
    known = {
        "port": start.port,
        "model": spec.model,
        "name": spec.deployment,
        "replica": spec.replica,
        "gpus": ",".join(member.gpu for member in spec.members),
        "rank": group.rank if group is not None else 0,
        "world_size": group.nodes if group is not None else 1,
        "leader": group.leader if group is not None else "127.0.0.1",
        "leader_port": group.port if group is not None else 0,
    }
    try:
        return tuple(word.format_map(known) for word in given)
    except (KeyError, ValueError, IndexError, AttributeError) as error:
        raise ConfigError(
            f"options.command: {error}: known in braces are {', '.join(sorted(known))}; write {{{{ for a brace"
        ) from error


COMMAND = Adapter(
    name="command",
    argv=argv,
    # Servers of OpenAI's API by the names of their programs; a port of a program without such a name is never asked.
    named_by=("trtllm-serve", "llama-server", "lmdeploy", "mlc_llm", "text-generation-router", "tabbyapi", "aphrodite"),
    model_flags=("--served-model-name", "--model-name", "--alias", "--model-id"),
)
