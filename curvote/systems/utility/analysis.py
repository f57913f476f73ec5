"""Analysis behind `curvote utility`: rows of deployments and a recommendation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from curvote.base import validate
from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.mechanisms.base import LabelMechanism
from curvote.mechanisms.factory import mechanism_class
from curvote.mechanisms.registry import MECHANISMS
from curvote.systems.utility.method.deployment import (
    OUTPUT,
    Deployment,
    ReadMode,
    deployment_channel,
)
from curvote.systems.utility.method.engines.base import Draws
from curvote.systems.utility.method.measurement import Measurement, Row, make_rows
from curvote.systems.utility.method.profile import Profile, build_profile
from curvote.systems.utility.method.recommendation import Recommendation, recommend
from curvote.systems.utility.method.scan import Refit, list_deployments, measure
from curvote.systems.utility.request import SEED, Request, check_epsilons

READ_ORDER: tuple[ReadMode, ...] = ("raw", "decode", "retrain")
Progress = Callable[[str], None]


@dataclass(frozen=True)
class AnalysisTerms:
    """Totals, mechanisms, reads and target of an analysis."""

    epsilons: tuple[float, ...]
    mechanisms: tuple[str, ...] | None = None
    reads: tuple[ReadMode, ...] | None = None
    target: float | None = None
    metric: Literal["agreement", "accuracy"] = "agreement"
    share: float | None = None
    confidence: float = 0.95
    draws: int = 2000
    delta: float = 0.0
    as_published: bool = False


@dataclass(frozen=True)
class DeploymentRows:
    """Deployment with its rows: of all records, then of each group."""

    deployment: Deployment
    rows: list[Row]

    @property
    def free(self) -> bool:
        """Whether the deployment is a floor."""
        return self.deployment.free

    @property
    def row(self) -> Row:
        """Row of all records."""
        return self.rows[0]


@dataclass(frozen=True)
class Analysis:
    """Result of the command: rows, floors among them, and recommendations."""

    ready: Request
    profile: Profile
    lines: list[DeploymentRows]
    advice: dict[float | None, Recommendation]

    def rows(self, *, free: bool) -> list[Row]:
        """Return the rows of the floors, or of all other deployments."""
        return [row for line in self.lines if line.free == free for row in line.rows]


def check_terms(
    epsilon: Sequence[float],
    mechanism: Sequence[str],
    read: Sequence[str],
    **options: Any,
) -> AnalysisTerms:
    """Return the checked terms; a wrong one is a UserError."""
    for name in mechanism:
        validate.one_of(MECHANISMS, mechanism=name)
    for name in read:
        validate.one_of(READ_ORDER, read=name)
    for name in ("target", "share"):
        if options[name] is not None:
            validate.fraction(**{name: options[name]})
    validate.one_of(("agreement", "accuracy"), metric=options["metric"])
    validate.fraction(confidence=options["confidence"])
    validate.at_least(1, draws=options["draws"])
    if not 0 <= options["delta"] < 1:
        raise UserError(f"delta is {options['delta']!r}; it must be in [0, 1).")
    reads = tuple(name for name in READ_ORDER if name in read)
    totals = check_epsilons(epsilon)
    return AnalysisTerms(totals, tuple(mechanism) or None, reads or None, **options)


def analyse(ready: Request, terms: AnalysisTerms, say: Progress) -> Analysis:
    """Return the analysis of a model and its records."""
    setting = ready.setting
    if terms.metric == "accuracy" and setting.labels is None:
        raise UserError("accuracy is about a label: name its column by --label.")
    needs = {
        "decode": (setting.public, "public records as its prior: --public FILE.csv"),
        "retrain": (setting.train, "training records: --train FILE.csv"),
    }
    for name in terms.reads or ():
        if name in needs and needs[name][0] is None:
            raise UserError(f"--read {name} needs {needs[name][1]}")
    n = setting.n
    if terms.as_published:
        say(f"asking about {n} records as published, 516,446 times each or more")
    totals, names = terms.epsilons, terms.mechanisms
    candidates = list_deployments(
        setting, totals, names, reads=terms.reads, delta=terms.delta
    )
    _check_mechanisms(ready, candidates)
    published = SeededEntropy(SEED) if terms.as_published else None
    profile = build_profile(setting, published=published)
    say(f"the model is known around {n} records (engine {profile.engine})")
    from joblib import Parallel, delayed

    def measure_one(deployment: Deployment) -> Measurement:
        draws = Draws(terms.draws, terms.confidence, SeededEntropy(SEED))
        return measure(setting, profile, deployment, draws, Refit(seed=SEED))

    measurements = Parallel(n_jobs=-1, prefer="threads")(
        map(delayed(measure_one), candidates)
    )
    scanned = list(zip(candidates, measurements, strict=True))
    say(f"{len(candidates)} deployments measured")
    common: dict[str, Any] = {"target": terms.target, "sample": ready.sample}
    lines = [
        DeploymentRows(pair[0], make_rows(setting, *pair, **common)) for pair in scanned
    ]
    aim = {**common, "metric": terms.metric, "share": terms.share, "seed": SEED}
    advice = {
        total: recommend(setting, profile, scanned, epsilon=total, **aim)
        for total in ((None,) if terms.target is not None else totals)
    }
    say("recommended from one half of the records, with the figures of the other")
    return Analysis(ready, profile, lines, advice)


def _check_mechanisms(ready: Request, candidates: Sequence[Deployment]) -> None:
    """Refuse a mechanism that cannot be made, or whose outputs are no number each."""
    setting = ready.setting
    first = {candidate.mechanism: candidate for candidate in reversed(candidates)}
    for name, deployment in first.items():
        if deployment.free or name == OUTPUT:
            continue
        law = deployment_channel(setting, deployment).law(setting.values[:1])
        if law is None and issubclass(mechanism_class(name), LabelMechanism):
            raise UserError(
                f"--mechanism {name}: its outputs are codes, and no number that could"
                " stand in a feature's place."
            )
