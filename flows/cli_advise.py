"""The command `curvote advise`: sizes and cutoff for a task, before anybody reports."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.errors import UserError

if TYPE_CHECKING:
    from curvote.theory import Plan, UtilityPrior

NO_GAIN = 0.01  # over the constant classifier: not worth a budget

Clients = Annotated[int, typer.Option(help="All clients: who report and who vote.")]
Size = Annotated[int, typer.Option("--d", help="Numbers in a report.")]
Epsilon = Annotated[float, typer.Option(help="Budget of each client.")]
Best = Annotated[float, typer.Option(help="Accuracy of the best rule, no noise.")]
Spread = Annotated[
    float, typer.Option(help="Standard deviation of a rescaled number in a class.")
]
Separation = Annotated[
    float | None,
    typer.Option(help="Distance of the class means (default: by best and spread)."),
]
Weak = Annotated[
    float | None,
    typer.Option(help="Instead: mean accuracy of weak classifiers, as in a pilot."),
]
WeakSize = Annotated[
    int | None, typer.Option("--weak-size", help="Reports of each of those.")
]
Positive = Annotated[float, typer.Option(help="Share of the positive class.")]
ShapeOption = Annotated[
    str, typer.Option(help="classes (two groups) or cloud (a logistic model).")
]
Mechanism = Annotated[str, typer.Option(help="An unbiased mechanism of reports.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


def advise(  # noqa: PLR0917 - the options of a command are its arguments
    clients: Clients,
    d: Size,
    epsilon: Epsilon,
    best: Best,
    spread: Spread = 0.3,
    separation: Separation = None,
    weak: Weak = None,
    weak_size: WeakSize = None,
    positive: Positive = 0.5,
    shape: ShapeOption = "classes",
    mechanism: Mechanism = "laplace",
    as_json: Json = False,
) -> None:
    """Recommend how to divide clients, and say what accuracy to expect."""
    from curvote.theory import UtilityPrior, prior_from_weak, recommend

    prior = UtilityPrior(best, spread, separation, positive, shape)
    if weak is not None or weak_size is not None:
        mean, size = _pilot(weak, weak_size, separation)
        prior = prior_from_weak(prior, mean, size, d, epsilon, mechanism=mechanism)
    plan = recommend(clients, d, epsilon, prior, mechanism=mechanism)
    if as_json:
        typer.echo(json.dumps(_document(plan, prior), indent=1))
    else:
        typer.echo(_words(plan, prior))


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
