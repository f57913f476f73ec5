"""Automatic learner: a mixture of the others, as the likelihood of codes weights it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from curvote.base.validate import FloatArray
from curvote.systems.labels.learners import smoothing, spectral
from curvote.systems.labels.learners.base import (
    Learner,
    LeftOutVotes,
    TrainingSet,
)
from curvote.systems.labels.learners.factory import takes_graph
from curvote.systems.labels.learners.forest import Forest
from curvote.systems.labels.learners.graph import Basis, Spectral, fit_graph
from curvote.systems.labels.learners.knn import (
    KNN,
    RidgeVotes,
    judge_neighbourhoods,
    scales,
)

# Neighbours of every record are looked for where there are no more records.
_NEAR = 1 << 13
# Of n K: maximum likelihood in folds takes ten times as long as all the rest.
_LOGISTIC = 1 << 16
# Chosen on the even seeds of benchmarks/court: how often the linear likelihood counts
# beforehand, where others count once; of how many codes that is worth; and the least
# weight that a member is fitted for.
_LINEAR = 4.0
_CREDIT = 10.0
_LEAST = 0.02
_ROUNDS = 200


_FAMILIES: Mapping[str, Callable[..., Learner]] = {
    "likelihood": spectral.LikelihoodVotes,
    "ridge": RidgeVotes,
    "forest": Forest,
    "spectral": spectral.SpectralVotes,
    "knn": KNN,
}


class Member(NamedTuple):
    """A learner with all settings stated, and its part in a mixture."""

    name: str
    params: dict[str, Any]
    exponent: int = 1
    weight: float = 1.0


@dataclass(eq=False, repr=False)
class Auto(Learner):
    """Mixes logistic models, ridge regression, a forest, a graph and neighbours.

    Each family tunes itself as it would alone; their probabilities are mixed as makes
    the codes likeliest, in folds that do not know them. The families: maximum
    likelihood and ridge regression on the standardised features; a forest; regression
    on the columns of a `Spectral`, and neighbours, with sweeps or without; maximum
    likelihood on those columns. Neighbours are tried up to 8,192 records, maximum
    likelihood and forests up to n K of 65,536; above n K of 4 million the graph is
    alone.

    ``spectral``: a fitted `Spectral`, whose graph is then taken as it is. ``members``:
    the mixture, where nothing is to be chosen.

    Attributes:
        learners_: the fitted members.
    """

    spectral: Spectral | None = None
    members: Sequence[Member] | None = None

    def _learn(self, data: TrainingSet) -> None:
        """Learn from records (n, d) and their codes (n,)."""
        X, codes, rng, _ = data
        graph, members = self.spectral, self.members
        mixed: FloatArray | None = None
        grown: dict[str, Learner] = {}
        if graph is None:
            graph = fit_graph(data.every, codes.n_classes)
        if members is None and len(X) * codes.n_classes > smoothing.MAX_SWEPT_NUMBERS:
            alone = spectral.SpectralVotes(spectral=graph).fit(X, codes, rng)
            self.tried_ = alone.tried_
            members = [Member("spectral", alone.chosen_)]
        elif members is None:
            chosen = list(_judge_families(data, graph, grown))
            trials = [choice.trial for choice in chosen]
            self.tried_ = [trial.to_row() for trial in trials]
            evidence = np.exp([trial.scores for trial in trials]).T
            linear = [trial.params.get("columns") == "features" for trial in trials]
            prior = np.where(linear, _LINEAR, 1)
            weights = mixture_weights(evidence, prior / prior.sum()).tolist()
            members = [
                Member(trial.name, dict(trial.params), trial.exponent, weight)
                for trial, weight in zip(trials, weights, strict=True)
            ]
            mixed = _mix(members, [choice.votes for choice in chosen])
            members = [member for member in members if member.weight > 0]
        self.chosen_ = {"members": members}
        self.learners_ = []
        for member in members:
            if (learner := grown.get(member.name)) is None:
                learner = _FAMILIES[member.name](**member.params)
                if takes_graph(learner):
                    learner.set_params(spectral=graph)
                learner.fit(X, codes, rng)
            self.learners_.append(learner)
        if mixed is None:
            self._set_left_out(self._mixed_left_out)
        else:
            self._set_left_out(lambda: LeftOutVotes(np.arange(len(X)), mixed))

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the mixed probabilities of the classes; rows sum to 1."""
        if hasattr(self, "learner_"):  # stored when one learner was chosen, alone
            return np.asarray(self.learner_.votes(X))
        members = self.chosen_["members"]
        return _mix(members, [learner.votes(X) for learner in self.learners_])

    def _mixed_left_out(self) -> LeftOutVotes:
        """Return the mixture of the members' left-out votes."""
        parts: list[Any] = [learner.without_own() for learner in self.learners_]
        rows: Any = reduce(np.intersect1d, [part.rows for part in parts])
        votes = [part.votes[np.searchsorted(part.rows, rows)] for part in parts]
        return LeftOutVotes(rows, _mix(self.chosen_["members"], votes))


def _mix(members: Sequence[Member], votes: Sequence[FloatArray]) -> FloatArray:
    """Return the weighted mean of the members' probabilities, (n, K)."""
    total = np.zeros_like(votes[0])
    for member, part in zip(members, votes, strict=True):
        total += member.weight * smoothing.probabilities(part, member.exponent)
    return total


def _judge_families(
    data: TrainingSet, graph: Spectral, grown: dict[str, Learner]
) -> Iterator[smoothing.FoldTrial]:
    """Yield the choice of each family, all judged in the same folds.

    A forest, which judging grows as learning would, is left in ``grown``.
    """
    X, codes, rng, _ = data
    targets = smoothing.CodeTargets.from_codes(codes)
    folds = smoothing.fold_masks(len(X), rng)
    logistic = len(X) * codes.n_classes <= _LOGISTIC

    def choose_ridge(matrix: FloatArray, **params: Any) -> smoothing.FoldTrial:
        grid = spectral.RIDGES
        votes = spectral.fold_probabilities(matrix, targets.likely, folds, grid)
        tried = spectral.judge_ridges(votes, targets.likely, params)
        return max(tried, key=lambda ridge: ridge.trial.likelihood)

    if logistic:
        matrix = spectral.standardised_columns(X, X.mean(axis=0), scales(X))
        yield choose_ridge(matrix, columns="features")
    ridge = RidgeVotes(standardise=True).fit(X, codes, rng).fixed()
    votes = np.empty_like(targets.decoded)
    for mask in folds:
        votes[mask] = ridge.fit(X[~mask], codes[~mask], rng).votes(X[mask])
    trial = smoothing.make_trial("ridge", ridge.get_params(), votes, targets.likely)
    yield smoothing.FoldTrial(trial, votes)
    if logistic:
        forest = Forest().fit(X, codes, rng)
        votes = np.asarray(forest.without_own().votes)
        trial = smoothing.make_trial("forest", forest.chosen_, votes, targets.likely)
        grown["forest"] = forest.set_params(**forest.chosen_)
        forest.tried_ = []  # as of one whose leaf was stated
        yield smoothing.FoldTrial(trial, votes)
    basis = Basis.from_graph(graph, X)
    products = basis.columns.T @ spectral.anchor_sums(basis, codes)
    grid = spectral.step_grid(basis.width)
    tried = spectral.judge_settings(basis, products, targets, grid)
    steps = smoothing.likeliest_trial(tried).params["steps"]
    options = spectral.looser_options(basis, steps)
    yield smoothing.choose_trial(smoothing.judge_sweeps(options, targets, folds))
    if len(X) <= _NEAR:
        _, options = judge_neighbourhoods(X, targets, codes.epsilon)
        yield smoothing.choose_trial(smoothing.judge_sweeps(options, targets, folds))
    if logistic:
        # Maximum likelihood on as many columns as are best for least squares.
        m = spectral.best_column_count(basis, products, targets)
        yield choose_ridge(basis.first_columns(m) * np.sqrt(len(codes)), m=m)


def mixture_weights(evidence: FloatArray, prior: FloatArray) -> FloatArray:
    """Return the weights (f,) of the likeliest mixture, by expectation maximisation.

    ``evidence`` (n, f) is how likely each member makes each code, up to a factor of
    the row's own; ``prior`` (f,) sums to 1.
    """
    weights = prior
    for _ in range(_ROUNDS):
        joint = evidence * weights
        sums = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0)
        weights = (sums + _CREDIT * prior) / (len(evidence) + _CREDIT)
    weights = np.where(weights < _LEAST, 0, weights)
    return np.asarray(weights / weights.sum())
