"""What `curvote utility` computes once model and records are known."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from curvote import validate
from curvote.entropy import SeededEntropy
from curvote.errors import UserError
from curvote.mechanisms.registry import MECHANISMS
from curvote.utility.deployments.deployment import Deployment
from curvote.utility.deployments.retrain import Refit
from curvote.utility.deployments.scan import deployments, measured
from curvote.utility.engines.base import Draws
from curvote.utility.known import Known, known
from curvote.utility.measured import Measured
from curvote.utility.models import asked
from curvote.utility.recommendation import Recommendation, recommend
from curvote.utility.rows import Row, rows_of
from flows.utility_setting import SEED, Ready

Say = Callable[[str], None]
Scanned = list[tuple[Deployment, Measured]]


@dataclass(frozen=True)
class Terms:
    """At which totals, by which mechanisms, and what is wanted of them."""

    epsilons: tuple[float, ...]
    mechanisms: tuple[str, ...] | None = None
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


def checked(epsilon: Sequence[float], mechanism: Sequence[str], **others: Any) -> Terms:
    """Return the terms; UserError: an epsilon, a target, a name that is none."""
    for name in mechanism:
        validate.one_of(MECHANISMS, mechanism=name)
    for name in ("target", "share"):
        if others[name] is not None:
            validate.fraction(**{name: others[name]})
    validate.one_of(("agreement", "accuracy"), metric=others["metric"])
    validate.fraction(confidence=others["confidence"])
    validate.at_least(1, draws=others["draws"])
    if not 0 <= others["delta"] < 1:
        raise UserError(f"delta is {others['delta']!r}; it must be in [0, 1).")
    return Terms(asked.epsilons(epsilon), tuple(mechanism) or None, **others)


def found(ready: Ready, terms: Terms, say: Say) -> Found:
    """Return everything that is said of a model and its records."""
    setting = ready.setting
    if terms.metric == "accuracy" and setting.labels is None:
        raise UserError("accuracy is about a label: name its column by --label.")
    ways = deployments(setting, terms.epsilons, terms.mechanisms, delta=terms.delta)
    what = known(setting)
    say(f"the model is known around {setting.n} records (engine {what.engine})")
    scanned = list(_measured(ready, what, ways, terms))
    say(f"{len(ways)} deployments measured")
    asks = {"target": terms.target, "sample": ready.sample}
    lines = [Line(each, rows_of(setting, each, own, **asks)) for each, own in scanned]
    advice = {
        total: _advice(ready, what, scanned, terms, total)
        for total in ((None,) if terms.target is not None else terms.epsilons)
    }
    say("recommended from one half of the records, with the figures of the other")
    return Found(ready, what, lines, advice)


def _measured(
    ready: Ready, what: Known, ways: Sequence[Deployment], terms: Terms
) -> Iterator[tuple[Deployment, Measured]]:
    for each in ways:
        draws = Draws(terms.draws, terms.confidence, SeededEntropy(SEED))
        yield each, measured(ready.setting, what, each, draws, Refit(seed=SEED))


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
