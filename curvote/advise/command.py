"""Command `curvote advise`: what to expect of a task, before anybody reports."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from curvote.base.errors import UserError
from curvote.chain.commands import align_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from curvote.advise.outlook import Expected, Outlook
    from curvote.advise.planner import ExcessBound, Prediction
    from curvote.advise.prior import UtilityPrior
    from curvote.messages.amplification import ShuffledGuarantee


HEAD = (
    "Error to expect of protocol direct in %, ± its spread from run to run; brackets:",
    "where nine runs of ten end if records are shifted, skewed, heavy-tailed or",
    "correlated. Columns: a weak, a middle and a strong link of numbers and class.",
)


def format_percent(value: float) -> str:
    """Write a share in percent points."""
    return f"{100 * value:.1f}"


def _percents(expected: Expected) -> list[str]:
    pairs = ((e.error, e.spread) for e in expected.values())
    return [" ± ".join(map(format_percent, pair)) for pair in pairs]


def volunteer_lines(outlook: Outlook) -> Iterator[str]:
    """Yield lines on what labelled volunteers buy: alone, and with the reports."""
    bought = outlook.volunteers
    if bought is None:
        return
    yield ""
    yield f"{bought.count} volunteers who make their records and labels public for good"
    yield f"tell as much as reports of N epsilon^2 = {bought.worth:,.0f}. Error in %:"
    yield ""
    worth = f"{bought.worth:,.0f}"
    table = [
        ["epsilon", "", "N epsilon^2", "better alone", *outlook.signals],
        ["", "volunteers alone", worth, "", *_percents(bought.alone)],
    ]
    for row in bought.rows:
        together = f"{bought.worth + row.reports:,.0f}"
        cells = [f"{row.epsilon:g}", "joined", together, bought.better(row)]
        table.append([*cells, *_percents(row.joined)])
    yield from align_columns(table)


def liar_lines(outlook: Outlook) -> Iterator[str]:
    """Yield lines that compare `votes` with `direct` under liars."""
    if not outlook.liars:
        return
    share = f"Where {100 * outlook.liars:g} % of the clients lie"
    yield ""
    yield f"{share}, in the worse of two ways: error in %, all honest -> with lies:"
    yield ""
    table = [["epsilon", "", *outlook.signals]]
    hidden = []
    for row in outlook.rows:
        if row.lied is None:
            continue
        votes, direct, at = row.lied.votes, row.lied.direct, f"{row.epsilon:g}"
        named = f"direct {next(iter(direct.values())).arm}"
        for kind, honest, lied in (
            ([at, "votes"], votes, row.lied.votes_lied),
            (["", named], direct, row.lied.direct_lied),
        ):
            pairs = ((honest[name].error, lied[name].error) for name in honest)
            table.append(kind + [" -> ".join(map(format_percent, p)) for p in pairs])
        lost = (100 * (votes[name].error - direct[name].error) for name in votes)
        table.append(
            ["", "votes cost, if honest", *(f"{points:+.1f}" for points in lost)]
        )
        hidden.append(f"epsilon {at}: {format_percent(row.lied.hidden)} % or more")
    yield from align_columns(table)
    yield ""
    yield f"{share}, no protocol in which each client sends one message can learn"
    yield "anything if even the best rule errs (of two equal classes) on"
    yield from hidden


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


def advise(  # noqa: PLR0917 - the options of a command are its arguments
    clients: Annotated[int, Option(help="Number of clients who take part.")],
    d: Annotated[int, Option("--features", "--d", help="Numbers of a record.")],
    epsilon: Annotated[
        list[float], Option(help="Budget of each client; give several for a row each.")
    ],
    best: Annotated[
        float | None,
        Option(
            help="Plan MRMA instead, if the best rule without noise is so accurate."
        ),
    ] = None,
    spread: Annotated[
        float, Option(help="MRMA: standard deviation of a number in a class.")
    ] = SPREAD,
    separation: Annotated[
        float | None,
        Option(help="MRMA: distance of the classes' means (default: from --best)."),
    ] = None,
    weak: Annotated[
        float | None,
        Option(help="MRMA: accuracy of a pilot's weak classifiers, if known."),
    ] = None,
    weak_size: Annotated[
        int | None, Option("--weak-size", help="MRMA: reports of each of them.")
    ] = None,
    positive: Annotated[
        float | None, Option(help="Share of the second class, where it is public.")
    ] = None,
    shape: Annotated[
        str, Option(help="MRMA: records form two groups (classes) or one (cloud).")
    ] = SHAPE,
    mechanism: Annotated[
        str, Option(help="MRMA: mechanism that noises reports (unbiased).")
    ] = MECHANISM,
    liars_: Annotated[
        float, Option("--liars", help="Share of clients who may lie, such as 0.05.")
    ] = 0.0,
    volunteers_: Annotated[
        int, Option("--volunteers", help="Clients who make record and label public.")
    ] = 0,
    as_json: Annotated[bool, Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Say which protocol fits so many clients, and what error to expect of it."""
    if best is None:
        option_values = (spread, separation, weak, weak_size, shape, mechanism)
        pairs = zip(PLANNER.items(), option_values, strict=True)
        names = [name for (name, default), value in pairs if value != default]
        if names:
            raise UserError(
                f"{', '.join(names)} is read by the plan of MRMA only: add --best, or"
                f" leave {', '.join(names)} out."
            )
        from curvote.advise.outlook import look_ahead

        chances = positive, liars_
        outlook = look_ahead(clients, d, epsilon, *chances, volunteers=volunteers_)
        text = json.dumps(outlook.document(), indent=1) if as_json else None
        typer.echo(text or _outlook_text(outlook))
        return
    if liars_:
        raise UserError("the plan of MRMA (--best) knows no --liars.")
    if volunteers_:
        raise UserError("the plan of MRMA (--best) knows no --volunteers.")
    from curvote.advise.planner import bound_excess, prior_from_weak, recommend
    from curvote.advise.prior import UtilityPrior
    from curvote.base.privacy import Budget
    from curvote.messages.amplification import ShuffledGuarantee, crowd_size
    from curvote.messages.message import messages_of

    share = 0.5 if positive is None else positive
    prior = UtilityPrior(best, spread, separation, share, shape)
    if len(epsilon) > 1:
        raise UserError(
            f"--epsilon is given {len(epsilon)} times, but a plan (--best) is for one."
        )
    budget = epsilon[0]
    if weak is not None or weak_size is not None:
        if weak is None or weak_size is None:
            raise UserError(
                "--weak and --weak-size describe a pilot together: give both."
            )
        if separation is not None:
            message = "--weak stands in place of --separation: give one of them."
            raise UserError(message)
        prior = prior_from_weak(prior, weak, weak_size, d, budget, mechanism=mechanism)
    plan = recommend(clients, d, budget, prior, mechanism=mechanism)
    # Its distance of laws is known for this noise.
    bound = bound_excess(plan, d, budget, prior) if mechanism == MECHANISM else None
    kinds = messages_of("mrma")
    crowds = {
        "report": crowd_size(kinds["report"], plan.n_train),
        "vote": crowd_size(kinds["vote"], plan.n_vote, plan.n_learners),
    }
    views = {
        name: view
        for name, n in crowds.items()
        if (view := ShuffledGuarantee.from_local(Budget(budget), n))
    }
    settings: dict[str, dict[str, Any]] = {
        "clients": {"train": plan.n_train, "vote": plan.n_vote},
        "train": {"count": plan.n_learners, "size": plan.n_per_learner},
        "aggregate": {"cutoff": plan.cutoff},
    }
    if as_json:
        document = {
            "settings": settings,
            "prediction": asdict(plan.prediction),
            "theorem_6": asdict(bound) | {"total": bound.total} if bound else None,
            "prior": asdict(prior),
            "majority": prior.constant,
            "outside": {name: asdict(view) for name, view in views.items()},
        }
        typer.echo(json.dumps(document, indent=1))
    else:
        plan_text = _plan_lines(settings, plan.prediction, prior, views, bound)
        typer.echo("\n".join(plan_text))


def _plan_lines(
    settings: dict[str, dict[str, Any]],
    prediction: Prediction,
    prior: UtilityPrior,
    views: dict[str, ShuffledGuarantee],
    bound: ExcessBound | None,
) -> Iterator[str]:
    from curvote.messages.amplification import OUTSIDER

    for part, values in settings.items():
        named = ", ".join(f"{key}: {value}" for key, value in values.items())
        yield f"{part}: {{{named}}}"
    low, high = prediction.interval
    yield ""
    yield (
        f"expected accuracy   {prediction.accuracy:.1%} (without privacy"
        f" {prior.best:.1%})"
    )
    yield (
        f"from run to run     ± {100 * prediction.spread:.1f} points; 95 % of the runs:"
        f" {low:.1%} to {high:.1%}"
    )
    yield (
        f"weak classifiers    {prediction.weak:.1%}; it is rightly decided which"
        f" to reverse for {prediction.reversal_right:.0%} of them"
    )
    yield f"majority            {prior.constant:.1%} (always the more frequent class)"
    if bound:
        yield (
            f"theorem 6           at most {100 * bound.total:.1f} points of error more"
            f" than the best rule; simulated {100 * bound.simulated:.1f}, a factor of"
            f" {bound.factor:.3g}"
        )
        empty = bound.total >= prior.best - prior.constant
        says = ", and here it does not even exclude the majority" if empty else ""
        yield f"                    a heuristic: hypothesis and proof differ{says}"
    if prediction.accuracy < prior.constant + NO_GAIN:
        yield "Nothing would be learnt here: ask more clients or spend more epsilon."
    if views:
        yield ""
        yield f"For {OUTSIDER}, epsilon is"
    for name, view in views.items():
        yield f"{view} for a {name}, hidden among {view.crowd:,}"


def _outlook_text(outlook: Outlook) -> str:
    from curvote.messages.amplification import OUTSIDER

    best = [format_percent(signal.best) for signal in outlook.signals.values()]
    table = [["epsilon", "auto takes", "N epsilon^2", "noise", *outlook.signals]]
    reasons = []
    for row in outlook.rows:
        choice, size = row.choice, outlook.clients * row.epsilon**2
        method = " ".join(filter(None, (choice.protocol, choice.arm)))
        text = f"{size:,.0f}" if size >= 10 else f"{size:.2g}"
        cells = [f"{row.epsilon:g}", method, text, f"{choice.noise:.2g}"]
        for name, error in zip(row.expected, _percents(row.expected), strict=True):
            mark = "*" if row.gains_nothing(name) else ""
            low, high = (f"{100 * end:.0f}" for end in row.reach[name])
            cells.append(f"{error}{mark} ({low}-{high})")
        table.append(cells)
        why = choice.reason.rpartition(": ")[2]
        reasons.append(f"epsilon {row.epsilon:g}, {choice.method}: noise {why}")
    majority = [format_percent(outlook.majority)] * len(best)
    table.append(["", "majority", "", "", *majority])
    table.append(["", "no privacy, best rule", "", "", *best])
    lines = [*HEAD, "", *align_columns(table)]
    if any(row.gains_nothing(name) for row in outlook.rows for name in outlook.signals):
        lines += ["", "* no better than the majority: always the more frequent class"]
    outsiders = [
        f"{row.outside} instead of {row.epsilon:g}, hidden among {row.outside.crowd:,}"
        for row in outlook.rows
        if row.outside
    ]
    if outsiders:
        outsiders = ["", f"For {OUTSIDER}, epsilon is", *outsiders]
    more = *volunteer_lines(outlook), *outsiders, *liar_lines(outlook)
    return "\n".join([*lines, "", *reasons, *more])
