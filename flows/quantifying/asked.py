"""What `curvote utility` computes once model and records are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from curvote import validate
from curvote.entropy import SeededEntropy
from curvote.errors import UserError
from curvote.flows.quantifying.setting import SEED, Ready
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.making import kind
from curvote.mechanisms.registry import MECHANISMS
from curvote.utility.deployments.deployment import OUTPUT, Deployment, Read, channel
from curvote.utility.deployments.retrain import Refit
from curvote.utility.deployments.scan import deployments, measured
from curvote.utility.engines.base import Draws
from curvote.utility.known import Known, known
from curvote.utility.measured import Measured
from curvote.utility.models import asked
from curvote.utility.recommendation import Recommendation, recommend
from curvote.utility.rows import Row, rows_of

READ: tuple[Read, ...] = ("raw", "decode", "retrain")
Say = Callable[[str], None]
Scanned = list[tuple[Deployment, Measured]]


@dataclass(frozen=True)
class Terms:
    """At which totals, by which mechanisms, and what is wanted of them."""

    epsilons: tuple[float, ...]
    mechanisms: tuple[str, ...] | None = None
    reads: tuple[Read, ...] | None = None
    target: float | None = None
    metric: Literal["agreement", "accuracy"] = "agreement"
    share: float | None = None
    confidence: float = 0.95
    draws: int = 2000
    delta: float = 0.0
    as_published: bool = False


@dataclass(frozen=True)
class Line:
    """A deployment with its rows: of all records, then of each group."""

    deployment: Deployment
    rows: list[Row]

    @property
    def free(self) -> bool:
        """Whether it is a floor."""
        return self.deployment.free

    @property
    def row(self) -> Row:
        """The row of all records."""
        return self.rows[0]


@dataclass(frozen=True)
class Found:
    """What the command says: rows, floors among them, and what is recommended."""

    ready: Ready
    known: Known
    lines: list[Line]
    advice: dict[float | None, Recommendation]

    def rows(self, *, free: bool) -> list[Row]:
        """Return the rows of the floors, or of what is sent."""
        return [row for each in self.lines if each.free == free for row in each.rows]


def checked(
    epsilon: Sequence[float],
    mechanism: Sequence[str],
    read: Sequence[str],
    **others: Any,
) -> Terms:
    """Return the terms; UserError: an epsilon, a target, a name that is none."""
    for name in mechanism:
        validate.one_of(MECHANISMS, mechanism=name)
    for name in read:
        validate.one_of(READ, read=name)
    for name in ("target", "share"):
        if others[name] is not None:
            validate.fraction(**{name: others[name]})
    validate.one_of(("agreement", "accuracy"), metric=others["metric"])
    validate.fraction(confidence=others["confidence"])
    validate.at_least(1, draws=others["draws"])
    if not 0 <= others["delta"] < 1:
        raise UserError(f"delta is {others['delta']!r}; it must be in [0, 1).")
    reads = tuple(each for each in READ if each in read)
    names = tuple(mechanism)
    return Terms(asked.epsilons(epsilon), names or None, reads or None, **others)


def found(ready: Ready, terms: Terms, say: Say) -> Found:
    """Return everything that is said of a model and its records."""
    setting = ready.setting
    if terms.metric == "accuracy" and setting.labels is None:
        raise UserError("accuracy is about a label: name its column by --label.")
    _check_reads(ready, terms)
    if terms.as_published:
        say(
            f"asking about {setting.n} records as published, 516,446 times each or more"
        )
    ways = deployments(
        setting,
        terms.epsilons,
        terms.mechanisms,
        reads=terms.reads,
        delta=terms.delta,
    )
    _check_mechanisms(ready, ways)
    published = SeededEntropy(SEED) if terms.as_published else None
    what = known(setting, published=published)
    say(f"the model is known around {setting.n} records (engine {what.engine})")
    scanned = _measured(ready, what, ways, terms)
    say(f"{len(ways)} deployments measured")
    asks = {"target": terms.target, "sample": ready.sample}
    lines = [Line(each, rows_of(setting, each, own, **asks)) for each, own in scanned]
    advice = {
        total: _advice(ready, what, scanned, terms, total)
        for total in ((None,) if terms.target is not None else terms.epsilons)
    }
    say("recommended from one half of the records, with the figures of the other")
    return Found(ready, what, lines, advice)


def _check_reads(ready: Ready, terms: Terms) -> None:
    """Refuse a way to read that needs records which are not given."""
    given = {"decode": ready.setting.public, "retrain": ready.setting.train}
    options = {"decode": "--public FILE.csv", "retrain": "--train FILE.csv"}
    whose = {"decode": "public records as its prior", "retrain": "training records"}
    for name in terms.reads or ():
        if name in given and given[name] is None:
            raise UserError(f"--read {name} needs {whose[name]}: {options[name]}")


def _check_mechanisms(ready: Ready, ways: Sequence[Deployment]) -> None:
    """Refuse a mechanism that cannot be made, or whose outputs are no number each."""
    first = {each.mechanism: each for each in reversed(ways) if not each.free}
    first.pop(OUTPUT, None)
    for name, each in first.items():
        law = channel(ready.setting, each).law(ready.setting.values[:1])
        if law is None and issubclass(kind(name), LabelMechanism):
            raise UserError(
                f"--mechanism {name}: its outputs are codes, and no number that could"
                " stand in a feature's place."
            )


def _measured(
    ready: Ready, what: Known, ways: Sequence[Deployment], terms: Terms
) -> Scanned:
    """Return what each deployment does, a thread for each processor: mostly numpy."""
    from joblib import Parallel, delayed

    def one(each: Deployment) -> Measured:
        draws = Draws(terms.draws, terms.confidence, SeededEntropy(SEED))
        return measured(ready.setting, what, each, draws, Refit(seed=SEED))

    every = Parallel(n_jobs=-1, prefer="threads")(delayed(one)(each) for each in ways)
    return list(zip(ways, every, strict=True))


def _advice(
    ready: Ready, what: Known, scanned: Scanned, terms: Terms, total: float | None
) -> Recommendation:
    return recommend(
        ready.setting,
        what,
        scanned,
        target=terms.target,
        epsilon=total,
        metric=terms.metric,
        share=terms.share,
        sample=ready.sample,
        seed=SEED,
    )
