"""Commands of transfer: what a source would add, before anybody is asked."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated

import typer

from curvote.base.errors import UserError
from curvote.chain.commands import align_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curvote.systems.transfer.method.advice import Advice, Gain, Offer, Server


COMMANDS = {"advise": "curvote.systems.transfer.commands:advise"}


FEATURES = 7  # what `heart` has; r depends on it more than on anything else
PUBLIC, OWN_BUDGET = "public", "own"

Servers = Annotated[
    list[str],
    typer.Option(
        "--server",
        help="NAME:records:epsilon[:gamma], the target first; epsilon: or public.",
    ),
]
Size = Annotated[int, typer.Option("--features", "--d", help="Numbers of a record.")]
Beta = Annotated[
    float, typer.Option(help="Servers: how smoothly chances change, 0 to 1.")
]
Delta = Annotated[
    float | None, typer.Option(help="Servers: delta of each release (default n^-2).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def advise(
    server: Servers,
    d: Size = FEATURES,
    beta: Beta = 1.0,
    delta: Delta = None,
    as_json: Json = False,
) -> None:
    """With --server: say what each other server's release adds, from which epsilon."""
    from curvote.systems.transfer.method import advice

    result = advice.advise([_parse_server(text, delta) for text in server], d, beta)
    document = json.dumps(result.document(), indent=1) if as_json else None
    typer.echo(document or "\n".join(format_advice(result)))


def _parse_server(text: str, delta: float | None) -> Server:
    """Return the server written as NAME:n:epsilon[:gamma]."""
    from curvote.systems.transfer.method.advice import Server

    name, *numbers = text.rsplit(":")
    if not name or len(numbers) not in {2, 3}:
        raise UserError(
            f"--server {text!r}: write NAME:n:epsilon or NAME:n:epsilon:gamma."
        )
    try:
        size, epsilon = int(numbers[0]), math.inf
        if numbers[1] not in {PUBLIC, OWN_BUDGET}:
            epsilon = float(numbers[1])
            if math.isinf(epsilon):
                raise ValueError(text)
        gamma = float(numbers[2]) if len(numbers) == 3 else 1.0
    except ValueError:
        raise UserError(
            f"--server {text!r}; n is a whole number, epsilon a number or {PUBLIC},"
            " gamma a number."
        ) from None
    try:
        return Server(name, size, epsilon, gamma, delta)
    except UserError as error:
        raise UserError(f"--server {text!r}: {error}") from None


def format_advice(advice: Advice) -> Iterator[str]:
    """Yield a table of r and its value, then a line for each source."""
    from curvote.systems.transfer.method.advice import NOTICEABLE_FALL

    target = advice.target
    yield (
        f"What each server's release adds for {target.name} ({advice.d} features, beta"
        f" {advice.beta:g}); r is DTK's equation (11), less is better:"
    )
    yield ""
    rows = [["", "records", "epsilon", "gamma", "r", "excess risk", "like records"]]
    alone = _gain_columns(advice.alone)
    rows.append([f"{target.name} alone", *_size_columns(target), "", *alone])
    for offer in advice.offers:
        server, gain = offer.server, _gain_columns(offer.gain)
        sizes = *_size_columns(server), f"{server.gamma:g}"
        rows.append([f"+ {server.name}", *sizes, *gain])
    rows.append(["with all of them", "", "", "", *_gain_columns(advice.together)])
    yield from align_columns(rows)
    yield ""
    yield from map(_format_offer, advice.offers)
    yield ""
    yield "excess risk: error above the best rule's, in % of that of the target alone;"
    yield "  a rate of growth without its constants: a first look, no promise"
    yield "like records: so many more records of the target's own would help as much"
    yield f"noticeable: r falls by {100 * NOTICEABLE_FALL:g} % or more"
    if advice.together.r >= 1:
        yield "r is 1 or more: with so few records nothing is promised at all."


def _size_columns(server: Server) -> tuple[str, str]:
    """Return the columns of size and epsilon."""
    public = math.isinf(server.epsilon)
    return f"{server.n:,}", PUBLIC if public else f"{server.epsilon:g}"


def _gain_columns(gain: Gain) -> tuple[str, str, str]:
    """Return the columns of r, excess risk and equivalent records."""
    return f"{gain.r:.4f}", f"{100 * gain.risk:.1f} %", f"{gain.records:,.0f}"


def _format_offer(offer: Offer) -> str:
    """Return whether to ask this server, and from which epsilon on."""
    name, least = offer.server.name, offer.least_epsilon
    if least is None:
        worth = f"excess risk {100 * offer.if_public.risk:.1f} % without any noise"
        return (
            f"{name}: do not ask, it adds nothing noticeable at any epsilon ({worth})."
        )
    begins = f"noticeable from epsilon {least:.3g} on"
    if offer.noticed:
        return f"{name}: worth asking; {begins}."
    level = f"epsilon {offer.server.epsilon:g}"
    return f"{name}: adds nothing noticeable at {level}; {begins}."
