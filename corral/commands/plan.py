"""``corral plan``: how much a model takes and what a GPU gives for it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from corral.ask import json_option
from corral.terminal import say

if TYPE_CHECKING:
    from engine.core.architecture import Architecture

HELP = """Say what a model takes and what a GPU gives for it: memory, requests, bounds, GPUs needed, time to load.

MODEL is a config.json, a folder with one, or a known name (try: corral plan list). All is counted from shapes and the
board's data sheet; nothing is started and no GPU is needed."""

DTYPES = ("fp32", "bf16", "fp16", "fp8", "int8", "int4")


@click.command(help=HELP)
@click.argument("model")
@click.option(
    "--gpu", default="H200-SXM", show_default=True, help="The board: L40S, H100-SXM, or as the driver says it."
)
@click.option("--gpus", type=click.IntRange(1, 64), help="Share it over this many (default: as few as it takes).")
@click.option("--context", type=click.IntRange(1), default=4096, show_default=True, help="Tokens of one request.")
@click.option("--users", type=click.IntRange(1), help="Requests at the same time (default: as many as fit).")
@click.option("--dtype", type=click.Choice(DTYPES), default="bf16", show_default=True, help="Of the weights.")
@click.option("--kv-dtype", type=click.Choice(DTYPES), default="bf16", show_default=True, help="Of the KV cache.")
@click.option(
    "--workspace-gib", type=click.FloatRange(0), default=2.0, show_default=True, help="Kept free on each GPU."
)
@click.option("--memory-gib", type=click.FloatRange(0, min_open=True), help="Of one GPU, if not what its name says.")
@click.option("--gpu-hour", type=click.FloatRange(0, min_open=True), help="Price of one GPU for an hour: says what a"
              " million tokens cost.")  # fmt: skip
@json_option
def command(model: str, gpu: str, context: int, users: int | None, gpus: int | None, dtype: str, kv_dtype: str,
            workspace_gib: float, memory_gib: float | None, gpu_hour: float | None, *,
            as_json: bool) -> int:  # fmt: skip
    """Count, and tell."""
    import msgspec

    from corral.plan_cost import cost
    from corral.plan_table import text
    from engine.capacity import GIB, Wish, plan
    from engine.known_shapes import KNOWN
    from vocab.catalogue.specs import SPECS, spec_named

    if model == "list":
        say("models: " + ", ".join(KNOWN))
        say("GPUs:   " + ", ".join(spec.name for spec in SPECS))
        return 0
    spec = spec_named(gpu)
    if spec is None:
        raise click.BadParameter(f"no figures of {gpu!r} are known; one of: {', '.join(s.name for s in SPECS)}")
    if memory_gib is not None:
        spec = msgspec.structs.replace(spec, memory_bytes=memory_gib * GIB)
    wish = Wish(context=context, users=users, gpus=gpus, dtype=dtype, kv_dtype=kv_dtype,
                workspace_bytes=workspace_gib * GIB)  # fmt: skip
    found = plan(_architecture(model), spec, wish)
    price = None if gpu_hour is None else cost(found, wish, gpu_hour)
    if as_json:
        told: dict[str, Any] = {"model": model, "gpu": spec.name, **msgspec.to_builtins(wish)}
        click.echo(
            msgspec.json.format(
                msgspec.json.encode(told | msgspec.to_builtins(found) | {"cost": msgspec.to_builtins(price)})
            ).decode()
        )
    else:
        click.echo(text(model, spec, wish, found, price))
    return 0 if found.requests is not None and found.requests >= (users or 1) else 1


def _architecture(model: str) -> "Architecture":
    """The shape that MODEL means. Raises BadParameter or ModelError."""
    import msgspec

    from engine.core.architecture import from_config_json
    from engine.known_shapes import KNOWN

    known = KNOWN.get(model.lower())
    path = Path(model)
    if known is not None and not path.exists():
        return known
    file = path / "config.json" if path.is_dir() else path
    try:
        return from_config_json(msgspec.json.decode(file.read_bytes(), type=dict[str, Any]), str(file))
    except OSError as error:
        raise click.BadParameter(f"{file}: {error.strerror}, and no known model; one of: {', '.join(KNOWN)}") from error
    except msgspec.DecodeError as error:
        raise click.BadParameter(f"{file}: no config.json: {error}") from error
