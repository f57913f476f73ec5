"""The command `curvote advise`: what to expect of a task, before anybody reports."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.chain.columns import aligned
from curvote.errors import UserError
from curvote.theory.advise_words import (
    HEAD,
    ends,
    liars,
    outside,
    percent,
    volunteers,
)

if TYPE_CHECKING:
    from curvote.protocols.outside import Outside
    from curvote.theory import Outlook, Plan, UtilityPrior
    from curvote.theory.outlook import Row

NO_GAIN = 0.01  # over the constant classifier: not worth a budget
SPREAD, SHAPE, MECHANISM = 0.3, "classes", "laplace"
PLANNER: dict[str, float | str | None] = {
    "--spread": SPREAD,
    "--separation": None,
    "--weak": None,
    "--weak-size": None,
    "--shape": SHAPE,
    "--mechanism": MECHANISM,
}

Clients = Annotated[int, typer.Option(help="All clients who take part.")]
Size = Annotated[int, typer.Option("--features", "--d", help="Numbers in a record.")]
Epsilon = Annotated[
    list[float], typer.Option(help="Budget of each client; several: a row each.")
]
Best = Annotated[
    float | None,
    typer.Option(help="Plan MRMA: accuracy of the best rule, no noise."),
]
Spread = Annotated[
    float, typer.Option(help="MRMA: standard deviation of a number in a class.")
]
Separation = Annotated[
    float | None,
    typer.Option(help="MRMA: distance of class means (default: by best and spread)."),
]
Weak = Annotated[
    float | None,
    typer.Option(help="MRMA: instead, mean accuracy of weak classifiers in a pilot."),
]
WeakSize = Annotated[
    int | None, typer.Option("--weak-size", help="MRMA: reports of each of those.")
]
Positive = Annotated[float, typer.Option(help="Share of the positive class.")]
ShapeOption = Annotated[
    str, typer.Option(help="MRMA: classes (two groups) or cloud (a logistic model).")
]
Mechanism = Annotated[str, typer.Option(help="MRMA: unbiased mechanism of reports.")]
Liars = Annotated[
    float, typer.Option("--liars", help="Share of clients who may lie, below 0.5.")
]
Volunteers = Annotated[
    int,
    typer.Option("--volunteers", help="How many make record and label public."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def advise(  # noqa: PLR0917 - the options of a command are its arguments
    clients: Clients,
    d: Size,
    epsilon: Epsilon,
    best: Best = None,
    spread: Spread = SPREAD,
    separation: Separation = None,
    weak: Weak = None,
    weak_size: WeakSize = None,
    positive: Positive = 0.5,
    shape: ShapeOption = SHAPE,
    mechanism: Mechanism = MECHANISM,
    liars_: Liars = 0.0,
    volunteers_: Volunteers = 0,
    as_json: Json = False,
) -> None:
    """Say what protocol auto takes and what error to expect; --best plans MRMA."""
    if best is None:
        _only_with_best(spread, separation, weak, weak_size, shape, mechanism)
        from curvote.theory import look_ahead

        found = look_ahead(
            clients, d, epsilon, positive, liars_, volunteers=volunteers_
        )
        document = json.dumps(found.document(), indent=1) if as_json else None
        typer.echo(document or _outlook(found))
        return
    if liars_:
        raise UserError("--liars asks what auto takes; leave --best out.")
    if volunteers_:
        raise UserError("--volunteers asks beside what auto takes; leave --best out.")
    from curvote.theory import UtilityPrior, prior_from_weak, recommend

    prior = UtilityPrior(best, spread, separation, positive, shape)
    own = _one(epsilon)
    if weak is not None or weak_size is not None:
        mean, size = _pilot(weak, weak_size, separation)
        prior = prior_from_weak(prior, mean, size, d, own, mechanism=mechanism)
    plan = recommend(clients, d, own, prior, mechanism=mechanism)
    shuffled = _shuffled(plan, own)
    if as_json:
        seen = {name: asdict(told) for name, told in shuffled.items()}
        typer.echo(json.dumps(_document(plan, prior) | {"outside": seen}, indent=1))
    else:
        typer.echo("\n".join([_words(plan, prior), *_seen(shuffled)]))


def _shuffled(plan: Plan, epsilon: float) -> dict[str, Outside]:
    """Return what an outsider sees of a report and of a vote of the plan."""
    from curvote.privacy import Budget
    from curvote.protocols.message import messages
    from curvote.protocols.outside import Outside, crowd

    known = messages("mrma")
    crowds = {
        "report": crowd(known["report"], plan.n_train),
        "vote": crowd(known["vote"], plan.n_vote, plan.n_learners),
    }
    told = {name: Outside.of(Budget(epsilon), n) for name, n in crowds.items()}
    return {name: found for name, found in told.items() if found}


def _seen(shuffled: dict[str, Outside]) -> list[str]:
    """Say it in words, a line a message."""
    from curvote.protocols.outside import WHO

    lines = [f"{n}: {told}, one of {told.crowd:,}" for n, told in shuffled.items()]
    return ["", f"For {WHO}, epsilon of a", *lines] if lines else []


def _only_with_best(*given: float | str | None) -> None:
    """Refuse what only the planner of MRMA asks for."""
    pairs = zip(PLANNER.items(), given, strict=True)
    names = [name for (name, default), value in pairs if value != default]
    if names:
        raise UserError(
            f"{', '.join(names)} describes a task to the planner of MRMA; give --best"
            " too, or leave it out."
        )


def _one(epsilon: list[float]) -> float:
    if len(epsilon) > 1:
        raise UserError(
            f"--epsilon is given {len(epsilon)} times; a plan (--best) is for one."
        )
    return epsilon[0]


def _outlook(found: Outlook) -> str:
    """Return a table and the reasons for what stands in it."""
    best = [percent(signal.best) for signal in found.signals.values()]
    lines = [*HEAD, ""]
    lines += aligned(
        [
            ["epsilon", "auto takes", "N epsilon^2", "noise", *found.signals],
            *(_cells(row, found.clients) for row in found.rows),
            ["", "majority", "", "", *[percent(found.majority)] * len(best)],
            ["", "no privacy, best rule", "", "", *best],
        ]
    )
    if any(row.nothing(name) for row in found.rows for name in found.signals):
        lines += ["", "* expect nothing better than the majority"]
    lines += ["", *map(_reason, found.rows)]
    return "\n".join([*lines, *volunteers(found), *outside(found.rows), *liars(found)])


def _cells(row: Row, clients: int) -> list[str]:
    """Return a line of the table; a star marks what gains nothing."""
    taken = " ".join(filter(None, (row.choice.protocol, row.choice.arm)))
    size = clients * row.epsilon**2
    told = f"{size:,.0f}" if size >= 10 else f"{size:.2g}"
    cells = [f"{row.epsilon:g}", taken, told, f"{row.choice.noise:.2g}"]
    for name, found in row.expected.items():
        mark = "*" if row.nothing(name) else ""
        told = f"{percent(found.error)} ± {percent(found.spread)}{mark}"
        cells.append(f"{told} {ends(row.reach[name])}")
    return cells


def _reason(row: Row) -> str:
    _, _, why = row.choice.reason.rpartition(": ")
    return f"epsilon {row.epsilon:g}, {row.choice.method}: noise {why}"


def _pilot(
    weak: float | None, size: int | None, separation: float | None
) -> tuple[float, int]:
    if weak is None or size is None:
        raise UserError("--weak and --weak-size tell of a pilot together; give both.")
    if separation is not None:
        raise UserError("--separation is what --weak stands for; give one of them.")
    return weak, size


def _settings(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the plan in the words of pipelines.yaml."""
    return {
        "clients": {"train": plan.n_train, "vote": plan.n_vote},
        "train": {"count": plan.n_learners, "size": plan.n_per_learner},
        "aggregate": {"cutoff": plan.cutoff},
    }


def _document(plan: Plan, prior: UtilityPrior) -> dict[str, Any]:
    return {
        "settings": _settings(plan),
        "prediction": asdict(plan.prediction),
        "prior": asdict(prior),
        "majority": prior.constant,
    }


def _words(plan: Plan, prior: UtilityPrior) -> str:
    found = plan.prediction
    low, high = found.interval
    spread = (
        f"{100 * found.spread:.1f} points; 95 % of the runs: {low:.1%} to {high:.1%}"
    )
    right = f"{found.weak:.1%}; reversal is right for {found.reversal_right:.0%}"
    lines = [f"{part}: {_flow(given)}" for part, given in _settings(plan).items()]
    lines += [
        "",
        f"expected accuracy   {found.accuracy:.1%} (without privacy {prior.best:.1%})",
        f"from run to run     {spread}",
        f"weak classifiers    {right}",
        f"constant classifier {prior.constant:.1%}",
    ]
    if found.accuracy < prior.constant + NO_GAIN:
        lines.append(
            "Nothing is learnt here: it takes more clients or a larger epsilon."
        )
    return "\n".join(lines)


def _flow(given: dict[str, Any]) -> str:
    """Return a mapping as YAML writes it on one line."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in given.items()) + "}"
