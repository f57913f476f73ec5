"""Transfer between servers as a scikit-learn class, from one release of each."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from curvote.base import entropy, validate
from curvote.base.classes import Classes
from curvote.base.errors import UserError
from curvote.base.privacy import Budget
from curvote.learning import estimators
from curvote.systems.transfer.method import weights as rules
from curvote.systems.transfer.method.advice import choose_form
from curvote.systems.transfer.method.model import DECISIONS, combine, normalize_weights
from curvote.systems.transfer.method.release import release
from curvote.systems.transfer.method.task import (
    FORMS,
    WITHOUT_NOISE,
    Feature,
    Level,
    PublicSetup,
    Task,
    form,
)

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

ALONE = "server"


def server_names(server: ArrayLike | None, n: int) -> list[str]:
    """Return the name of each row's server as text."""
    if server is None:
        return [ALONE] * n
    names = np.asarray(server, dtype=object)
    if names.shape != (n,):
        raise UserError(f"server has shape {names.shape}; X has {n} rows: ({n},).")
    if pd.isna(names).any():
        row = int(np.flatnonzero(pd.isna(names))[0])
        raise UserError(f"server: row {row} has none.")
    return [str(name) for name in names]


def server_value(values: Any, server: str, parameter: str) -> Any:
    """Return the value that is stated for a server; none is a UserError."""
    if not isinstance(values, Mapping):
        return values
    by_name = {str(name): value for name, value in values.items()}
    if server not in by_name:
        raise UserError(
            f"{parameter} is stated for {', '.join(by_name) or 'no server'}; server"
            f" {server} has none."
        )
    return by_name[server]


AUTO = "auto"
OF_TWO = "kernel"


@dataclass(kw_only=True, eq=False, repr=False)
class TransferKernelClassifier(
    estimators.WithoutProbabilities, ClassifierMixin, BaseEstimator
):
    """A classifier for one of several servers, from one noised release of each.

    `fit` plays all servers and the target: each server's rows become one release, which
    is (epsilon, delta)-private for each of them (replace-one), and the target combines
    what it gets (Auddy, Cai & Chakraborty 2024, and what `curvote.transfer` adds).

    Parameters
    ----------
    epsilon : float, "public", "own", or mapping of servers to one of these, default=1
        Budget of a server's one release, 0 < epsilon < inf. ``public`` and ``own`` are
        without noise: records that are anybody's, or that stay where the model stays.
    delta : float, None, or a mapping from server to one of these, default=None
        At most 1/n for a server of n rows; None stands for n^-2. A server of one row
        needs one of its own, at most 1e-4.
    release : "auto", "cells", "moments", "kernel" or "counts", default="auto"
        The form of a release. ``auto`` decides by what is public: the number of
        features and classes, the servers' sizes and budgets. ``kernel`` is for two
        classes; ``counts`` holds class frequencies only.
    target : str or None, default=None
        The server that the classifier is for; None takes the first in sorted order.
    weights : str or mapping from server to a number of at least 0, default="aligned"
        ``aligned``, ``precision``, or a rule of the paper: ``adapt_tar``,
        ``adapt_samp``, ``adapt_homog``, ``adapt_all``.
    decide : "balanced" or "prior", default="balanced"
        As if all classes were equally frequent, or as they are at the target.
    bounds : (lower, upper), numbers or arrays by feature, default=(-1, 1)
        Public; values beyond count as lying on them. Never taken from X.
    random_state : int, RandomState, Generator or None, default=None
        None draws from the operating system (`SystemEntropy`), whatever numpy's global
        seed is: the only choice where somebody is to be protected. All else is a
        study's seed (`SeededEntropy`): whoever knows it can remove the noise. An int
        gives the same at each fit; numpy's RandomState and Generator are drawn from.

    Attributes
    ----------
    classes_ : array (K,)
        The labels; they count as public.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : array
        Their names, where X was a DataFrame.
    target_ : str
        The server that the classifier is for.
    task_ : `curvote.transfer.Task`
        With the form taken and its parameters; class k is called by the text of
        ``classes_[k]``.
    reason_ : str or None
        Why ``auto`` took this form, None where one was named.
    sent_ : list of `curvote.transfer.Release`
        One of each server.
    model_ : `curvote.transfer.Model`
        ``model_.servers`` has each server's weight and agreement with the target,
        ``model_.inside`` says that a server's ``own`` records stand in it without
        noise.
    spent_ : dict of Budget
        For each server that added noise what a row that stood in every fit of this
        object has spent there, as a fit draws anew. A row in several servers has spent
        their sum.
    releases_ : array (n,)
        How many fits released the row of this place with noise.
    private_ : bool
        False as soon as one of these fits had a ``random_state``.

    Notes
    -----
    A UserError (a ValueError) names parameters or data that are out of range. Names of
    servers are compared as text. Scikit-learn's searches fit clones, which cannot count
    together: see `curvote.DirectClassifier`. For them to hand over ``server``, enable
    metadata routing and call ``set_fit_request(server=True)``.

    As of `curvote.DirectClassifier`, a warning names columns that lie outside what is
    stated of them, and a scaler that learns from X is outside of the budget.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.tile([[-0.5], [0.5]], (200, 1)), np.tile(["no", "yes"], 200)
    >>> hospital = np.repeat(["here", "there"], 200)
    >>> model = TransferKernelClassifier(epsilon={"here": 1, "there": 2}, target="here")
    >>> print(model.fit(X, y, server=hospital).spent_["there"])
    epsilon 2, delta 2.5e-05
    >>> print(*model.predict([[-0.4], [0.6]]))
    no yes
    """

    epsilon: float | str | Mapping[Any, float | str] = 1.0
    delta: float | Mapping[Any, float | None] | None = None
    release: str = AUTO
    target: Any = None
    weights: str | Mapping[str, float] = "aligned"
    decide: str = "balanced"
    bounds: tuple[float | ArrayLike, float | ArrayLike] = (-1, 1)
    random_state: entropy.RandomState = None

    @property
    def many(self) -> bool:
        """Whether the form of a release tells more than two classes apart."""
        return self.release != OF_TWO

    def fit(
        self, X: Any, y: ArrayLike, server: ArrayLike | None = None, **refused: Any
    ) -> Self:
        """Draw and combine the releases on X (n, d), labels y (n,) and servers (n,).

        Without ``server`` all rows are one server's. Each call draws anew: ``spent_``
        says what a row of all of them has spent. A ``sample_weight`` is a UserError.
        """
        self._refuse_weights(refused)
        X, y = estimators.numeric_records(self, X, y)
        classes, codes = estimators.encode_labels(y)
        if server is None:
            for name in ("epsilon", "delta", "target", "weights"):
                value = getattr(self, name)
                if isinstance(value, Mapping) or (
                    name == "target" and value is not None
                ):
                    raise UserError(
                        f"{name} is {validate.format_value(value)}, but fit was given"
                        " no server: write fit(X, y, server=...), a name for each row."
                    )
        servers = np.array(server_names(server, len(codes)))
        names, counts = np.unique(servers, return_counts=True)
        sizes = dict(zip(names.tolist(), counts.tolist(), strict=True))
        target = next(iter(sizes))
        if self.target is not None:
            target = validate.one_of(sizes, target=str(self.target))
        estimators.check_class_count(classes)
        levels = {}
        for name in sizes:
            epsilon, delta = server_value(self.epsilon, name, "epsilon"), None
            if epsilon not in WITHOUT_NOISE:
                delta = server_value(self.delta, name, "delta")
            levels[name] = Level(epsilon, delta)
        d = X.shape[1]
        columns = getattr(self, "feature_names_in_", [f"x{i}" for i in range(d)])
        ends = estimators.feature_bounds(self.bounds, d)
        features = [
            Feature(*column)
            for column in zip(columns, *(end.tolist() for end in ends), strict=True)
        ]
        task = Task(tuple(features), Classes(map(str, classes)), levels)
        spends = {}
        for name, n in sizes.items():
            try:
                if task.servers[name].noised:
                    spends[name] = task.servers[name].budget(n)
            except UserError as error:
                raise UserError(f"server {name}: {error}") from None
        self.task_, self.reason_ = self._task_in_form(task, sizes, target)
        estimators.warn_clipped(X, ends, [feature.name for feature in task.features])
        weights, seed = self._check_weights(), entropy.seed_sequence(self.random_state)
        before: dict[str, Budget] = getattr(self, "spent_", {})
        added = {name: before[name] + spends[name] for name in before.keys() & spends}
        self.spent_ = before | spends | added
        self._count_releases(np.isin(servers, [*spends]).astype(np.int64))
        labels = np.array(self.task_.classes)[codes]
        self.sent_ = []
        for name in self.task_.servers:
            noise = (
                entropy.SystemEntropy() if seed is None else entropy.SeededEntropy(seed)
            )
            rows = servers == name
            self.sent_.append(release(self.task_, name, X[rows], labels[rows], noise))
        self.model_ = combine(self.task_, self.sent_, target, weights, self.decide)
        self.classes_, self.target_ = classes, target
        return self

    def decision_function(self, X: Any) -> Array:
        """Return scores: (n,) of the second of two classes, else (n, K)."""
        records = self._check_records(X)
        return np.asarray(self.model_.decision_function(records))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted class of each row."""
        records = self._check_records(X)
        return np.asarray(self.classes_[self.model_.codes(records)])

    def _check_records(self, X: Any) -> Array:
        check_is_fitted(self, "classes_")  # a fit that failed has counted, no more
        return np.asarray(estimators.numeric_records(self, X, reset=False))

    def _task_in_form(
        self, task: Task, sizes: Mapping[str, int], target: str
    ) -> tuple[Task, str | None]:
        """Return the task in the requested form, and the reason of a chosen one."""
        setup = PublicSetup(task.d, len(task.classes), sizes, task.servers, target)
        classes = len(task.classes)
        names = [name for name in FORMS if not form(name).study]
        if (
            validate.one_of((AUTO, *names), release=self.release) == OF_TWO
            and classes > 2
        ):
            raise UserError(
                "Only binary classification is supported by release kernel, and y has"
                f" {classes} classes; take cells or moments."
            )
        requested = self.release
        if requested != AUTO:
            params = form(requested).plan_params({}, setup)
            return replace(task, release=requested, params=params), None
        choice = choose_form(setup)
        planned = replace(task, release=choice.release, params=choice.params)
        return planned, choice.reason

    def _check_weights(self) -> str | dict[str, float]:
        """Return the weights; what `combine` would refuse spends nothing."""
        validate.one_of(DECISIONS, decide=self.decide)
        if isinstance(self.weights, str):
            rules.fixed_rule(self.weights)
            return self.weights
        if not isinstance(self.weights, Mapping):
            raise UserError(
                f"weights is {validate.format_value(self.weights)}; give a rule's name,"
                " or a number for each server."
            )
        named = {str(name): weight for name, weight in self.weights.items()}
        normalize_weights(named, list(self.task_.servers))
        return named
