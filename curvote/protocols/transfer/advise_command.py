"""The form of `curvote advise` for servers: is it worth asking this hospital?"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated

import typer

from curvote.chain.columns import aligned
from curvote.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curvote.transfer.advice import Advice, Gain, Offer, Server

FEATURES = 7  # what `heart` has; r depends on it more than on anything else
PUBLIC, OWN = "public", "own"

Servers = Annotated[
    list[str],
    typer.Option(
        "--server",
        help="NAME:n:epsilon[:gamma], the target first; epsilon may be public.",
    ),
]
Size = Annotated[int, typer.Option("--features", "--d", help="Numbers in a record.")]
Beta = Annotated[
    float, typer.Option(help="Servers: smoothness of the class's probability, 0 to 1.")
]
Delta = Annotated[
    float | None, typer.Option(help="Servers: delta of every release (default n^-2).")
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def advise(
    server: Servers,
    d: Size = FEATURES,
    beta: Beta = 1.0,
    delta: Delta = None,
    as_json: Json = False,
) -> None:
    """With --server: say what each source adds to a target, and from which epsilon."""
    from curvote.transfer import advice

    found = advice.advise([_read(text, delta) for text in server], d, beta)
    document = json.dumps(found.document(), indent=1) if as_json else None
    typer.echo(document or "\n".join(words(found)))


def _read(text: str, delta: float | None) -> Server:
    """Return NAME:n:epsilon[:gamma]."""
    from curvote.transfer.advice import Server

    name, *numbers = text.rsplit(":")
    if not name or len(numbers) not in {2, 3}:
        raise UserError(
            f"--server {text!r}; write NAME:n:epsilon or NAME:n:epsilon:gamma."
        )
    try:
        size, epsilon = int(numbers[0]), _epsilon(numbers[1])
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


def _epsilon(text: str) -> float:
    """Return infinity for what is not noised: public records, and the target's own."""
    if text in {PUBLIC, OWN}:
        return math.inf
    epsilon = float(text)
    if math.isinf(epsilon):
        raise ValueError(text)
    return epsilon


def words(found: Advice) -> Iterator[str]:
    """Yield a table of r and what it is worth, then a line for each source."""
    target = found.target
    yield (
        f"Target {target.name}, {found.d} features, beta {found.beta:g}; r as in DTK's"
        " equation (11), less is better:"
    )
    yield ""
    rows = [["", "records", "epsilon", "gamma", "r", "excess risk", "like records"]]
    rows.append([f"{target.name} alone", *_given(target), "", *_worth(found.alone)])
    for offer in found.offers:
        own = offer.server
        rows.append(
            [f"+ {own.name}", *_given(own), f"{own.gamma:g}", *_worth(offer.gain)]
        )
    rows.append(["with all of them", "", "", "", *_worth(found.together)])
    yield from aligned(rows)
    yield ""
    yield from map(_told, found.offers)
    yield ""
    yield "excess risk: error beyond the best rule's, the target alone being 100 %;"
    yield "  a rate, which leaves constants out: a first look, no promise"
    yield "like records: so many of the target's own would do the same"
    yield f"noticeable: r falls by {_noticed()} or more"
    if found.together.r >= 1:
        yield "r is not below 1: with so few records no rate is promised at all."


def _given(server: Server) -> tuple[str, str]:
    public = math.isinf(server.epsilon)
    return f"{server.n:,}", PUBLIC if public else f"{server.epsilon:g}"


def _worth(gain: Gain) -> tuple[str, str, str]:
    return f"{gain.r:.4f}", f"{100 * gain.risk:.1f} %", f"{gain.records:,.0f}"


def _told(offer: Offer) -> str:
    """Say whether to ask this server, and from which epsilon on."""
    name, least = offer.server.name, offer.least_epsilon
    if least is None:
        worth = f"excess risk {100 * offer.if_public.risk:.1f} % without any noise"
        return f"{name}: adds nothing noticeable at any epsilon ({worth})."
    begins = f"noticeable from epsilon {least:.3g} on"
    if offer.noticed:
        return f"{name}: worth asking; {begins}."
    given = f"epsilon {offer.server.epsilon:g}"
    return f"{name}: adds nothing noticeable at {given}; {begins}."


def _noticed() -> str:
    from curvote.transfer.advice import NOTICED

    return f"{100 * NOTICED:g} %"
