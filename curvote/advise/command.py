"""Command `curvote advise`: what to expect of a task, before anybody reports."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.base.errors import UserError
from curvote.chain.commands import align_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curvote.advise.advice import Plan
    from curvote.advise.outlook import Expected, Outlook, OutlookRow
    from curvote.advise.prior import UtilityPrior
    from curvote.messages.amplification import ShuffledGuarantee


HEAD = (
    "Error to expect of direct in %, ± its spread from run to run; in brackets, where",
    "nine runs of ten end if records are shifted, skewed, heavy-tailed or correlated:",
)


def format_interval(reach: tuple[float, float]) -> str:
    """Write an interval in percent."""
    low, high = (f"{100 * end:.0f}" for end in reach)
    return f"({low}-{high})"


def format_percent(value: float) -> str:
    """Write a share in percent points."""
    return f"{100 * value:.1f}"


def volunteer_lines(outlook: Outlook) -> Iterator[str]:
    """Yield lines on what labelled volunteers buy: alone, and with the reports."""
    bought = outlook.volunteers
    if bought is None:
        return
    yield ""
    yield f"{bought.count} volunteers who make their records and labels public for good"
    yield f"are worth reports of N epsilon^2 = {bought.worth:,.0f}. Error in %:"
    yield ""
    yield from align_columns(
        [
            ["epsilon", "", "N epsilon^2", "better alone", *outlook.signals],
            [
                "",
                "volunteers alone",
                f"{bought.worth:,.0f}",
                "",
                *_error_cells(bought.alone),
            ],
            *(
                [
                    f"{row.epsilon:g}",
                    "joined",
                    f"{bought.worth + row.reports:,.0f}",
                    bought.better(row),
                    *_error_cells(row.joined),
                ]
                for row in bought.rows
            ),
        ]
    )


def _error_cells(expected: Expected) -> list[str]:
    return [
        f"{format_percent(e.error)} ± {format_percent(e.spread)}"
        for e in expected.values()
    ]


def outsider_lines(rows: list[OutlookRow]) -> list[str]:
    """Return lines on what is left of epsilon for who trusts the shuffler."""
    from curvote.messages.amplification import OUTSIDER

    shuffled = [row for row in rows if row.outside]
    lines = [
        f"epsilon {row.epsilon:g}: {row.outside}, one of {row.outside.crowd:,}"
        for row in shuffled
        if row.outside
    ]
    return ["", f"For {OUTSIDER}:", *lines] if lines else []


def liar_lines(outlook: Outlook) -> Iterator[str]:
    """Yield lines that compare `votes` with `direct` under liars."""
    if not outlook.liars:
        return
    share = f"With {100 * outlook.liars:g} % of liars"
    yield from (
        "",
        f"{share}, the worse of two lies, error in %, honest -> lied to:",
        "",
    )
    table = [["epsilon", "", *outlook.signals]]
    for row in outlook.rows:
        table += _compare_rows(row)
    yield from align_columns(table)
    yield from ("", f"{share} no protocol in which each client sends one message can")
    yield "find a signal whose best rule (classes being equal) errs on"
    for row in outlook.rows:
        if row.lied:
            yield (
                f"epsilon {row.epsilon:g}: {format_percent(row.lied.hidden)} % or more"
            )


def _compare_rows(row: OutlookRow) -> Iterator[list[str]]:
    if row.lied is None:
        return
    arm = next(iter(row.lied.direct.values())).arm
    yield [
        f"{row.epsilon:g}",
        "votes",
        *_error_pairs(row.lied.votes, row.lied.votes_lied),
    ]
    yield ["", f"direct {arm}", *_error_pairs(row.lied.direct, row.lied.direct_lied)]
    lost = (
        100 * (row.lied.votes[name].error - row.lied.direct[name].error)
        for name in row.lied.votes
    )
    yield ["", "votes cost, honest", *(f"{points:+.1f}" for points in lost)]


def _error_pairs(honest: Expected, lied: Expected) -> list[str]:
    return [
        f"{format_percent(honest[name].error)} -> {format_percent(lied[name].error)}"
        for name in honest
    ]


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
        _refuse_planner_options(spread, separation, weak, weak_size, shape, mechanism)
        from curvote.advise.outlook import look_ahead

        outlook = look_ahead(
            clients, d, epsilon, positive, liars_, volunteers=volunteers_
        )
        document = json.dumps(outlook.document(), indent=1) if as_json else None
        typer.echo(document or _outlook_text(outlook))
        return
    if liars_:
        raise UserError("--liars asks what auto takes; leave --best out.")
    if volunteers_:
        raise UserError("--volunteers asks beside what auto takes; leave --best out.")
    from curvote.advise.advice import recommend
    from curvote.advise.planner import prior_from_weak
    from curvote.advise.prior import UtilityPrior

    prior = UtilityPrior(best, spread, separation, positive, shape)
    if len(epsilon) > 1:
        raise UserError(
            f"--epsilon is given {len(epsilon)} times; a plan (--best) is for one."
        )
    budget = epsilon[0]
    if weak is not None or weak_size is not None:
        if weak is None or weak_size is None:
            raise UserError(
                "--weak and --weak-size tell of a pilot together; give both."
            )
        if separation is not None:
            raise UserError("--separation is what --weak stands for; give one of them.")
        mean, size = weak, weak_size
        prior = prior_from_weak(prior, mean, size, d, budget, mechanism=mechanism)
    plan = recommend(clients, d, budget, prior, mechanism=mechanism)
    shuffled = _outside_views(plan, budget)
    if as_json:
        outside_views = {name: asdict(view) for name, view in shuffled.items()}
        typer.echo(
            json.dumps(
                {
                    "settings": _plan_settings(plan),
                    "prediction": asdict(plan.prediction),
                    "prior": asdict(prior),
                    "majority": prior.constant,
                }
                | {"outside": outside_views},
                indent=1,
            )
        )
    else:
        typer.echo("\n".join([_plan_text(plan, prior), *_outside_text(shuffled)]))


def _outside_views(plan: Plan, epsilon: float) -> dict[str, ShuffledGuarantee]:
    """Return an outsider's view of a report and of a vote of the plan."""
    from curvote.base.privacy import Budget
    from curvote.messages.amplification import ShuffledGuarantee, crowd_size
    from curvote.messages.message import messages_of

    kinds = messages_of("mrma")
    crowds = {
        "report": crowd_size(kinds["report"], plan.n_train),
        "vote": crowd_size(kinds["vote"], plan.n_vote, plan.n_learners),
    }
    views = {
        name: ShuffledGuarantee.from_local(Budget(epsilon), n)
        for name, n in crowds.items()
    }
    return {name: view for name, view in views.items() if view}


def _outside_text(shuffled: dict[str, ShuffledGuarantee]) -> list[str]:
    """Return the outsider's views as text, a line a message."""
    from curvote.messages.amplification import OUTSIDER

    lines = [f"{n}: {view}, one of {view.crowd:,}" for n, view in shuffled.items()]
    return ["", f"For {OUTSIDER}, epsilon of a", *lines] if lines else []


def _refuse_planner_options(*values: float | str | None) -> None:
    """Refuse options that only the planner of MRMA takes."""
    pairs = zip(PLANNER.items(), values, strict=True)
    names = [name for (name, default), value in pairs if value != default]
    if names:
        raise UserError(
            f"{', '.join(names)} describes a task to the planner of MRMA; give --best"
            " too, or leave it out."
        )


def _outlook_text(outlook: Outlook) -> str:
    """Return the outlook as text: a table, and the reasons for it."""
    best = [format_percent(signal.best) for signal in outlook.signals.values()]
    lines = [*HEAD, ""]
    lines += align_columns(
        [
            ["epsilon", "auto takes", "N epsilon^2", "noise", *outlook.signals],
            *(_row_cells(row, outlook.clients) for row in outlook.rows),
            ["", "majority", "", "", *[format_percent(outlook.majority)] * len(best)],
            ["", "no privacy, best rule", "", "", *best],
        ]
    )
    if any(row.gains_nothing(name) for row in outlook.rows for name in outlook.signals):
        lines += ["", "* expect nothing better than the majority"]
    lines += ["", *map(_choice_reason, outlook.rows)]
    return "\n".join(
        [
            *lines,
            *volunteer_lines(outlook),
            *outsider_lines(outlook.rows),
            *liar_lines(outlook),
        ]
    )


def _row_cells(row: OutlookRow, clients: int) -> list[str]:
    """Return a line of the table; a star marks what gains nothing."""
    method = " ".join(filter(None, (row.choice.protocol, row.choice.arm)))
    size = clients * row.epsilon**2
    text = f"{size:,.0f}" if size >= 10 else f"{size:.2g}"
    cells = [f"{row.epsilon:g}", method, text, f"{row.choice.noise:.2g}"]
    for name, expectation in row.expected.items():
        mark = "*" if row.gains_nothing(name) else ""
        text = (
            f"{format_percent(expectation.error)} ±"
            f" {format_percent(expectation.spread)}{mark}"
        )
        cells.append(f"{text} {format_interval(row.reach[name])}")
    return cells


def _choice_reason(row: OutlookRow) -> str:
    _, _, why = row.choice.reason.rpartition(": ")
    return f"epsilon {row.epsilon:g}, {row.choice.method}: noise {why}"


def _plan_settings(plan: Plan) -> dict[str, dict[str, Any]]:
    """Return the plan in the words of pipelines.yaml."""
    return {
        "clients": {"train": plan.n_train, "vote": plan.n_vote},
        "train": {"count": plan.n_learners, "size": plan.n_per_learner},
        "aggregate": {"cutoff": plan.cutoff},
    }


def _plan_text(plan: Plan, prior: UtilityPrior) -> str:
    prediction = plan.prediction
    low, high = prediction.interval
    spread = (
        f"{100 * prediction.spread:.1f} points; 95 % of the runs: {low:.1%} to"
        f" {high:.1%}"
    )
    right = (
        f"{prediction.weak:.1%}; reversal is right for {prediction.reversal_right:.0%}"
    )
    lines = [
        f"{part}: {_yaml_flow(values)}" for part, values in _plan_settings(plan).items()
    ]
    lines += [
        "",
        (
            f"expected accuracy   {prediction.accuracy:.1%} (without privacy"
            f" {prior.best:.1%})"
        ),
        f"from run to run     {spread}",
        f"weak classifiers    {right}",
        f"constant classifier {prior.constant:.1%}",
    ]
    if prediction.accuracy < prior.constant + NO_GAIN:
        lines.append(
            "Nothing is learnt here: it takes more clients or a larger epsilon."
        )
    return "\n".join(lines)


def _yaml_flow(mapping: dict[str, Any]) -> str:
    """Return a mapping as YAML writes it on one line."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in mapping.items()) + "}"
