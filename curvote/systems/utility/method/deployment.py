"""Settings (a model, its records, what is public) and deployments of noise on them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.mechanisms.base import LabelMechanism, VectorMechanism
from curvote.mechanisms.factory import mechanism_class
from curvote.systems.utility.method.engines import base

Places = NDArray[np.int64]
# Rows that a model is asked for at once: 100 columns of them are 200 MB.
_BLOCK_ROWS = 1 << 18
NO_PRIOR = (
    "Decoding needs public records as its prior: give public=... (volunteers or a"
    " public file, --public FILE.csv), or read the output raw."
)
NO_TRAIN = "Retraining needs training data: give train=(X, y), as fit takes them."


@dataclass(frozen=True)
class Setting:
    """Fitted classifier, the records it will answer, and public data on them.

    ``records`` (n, D) are in the model's units; ``sensitive`` are the places of the s
    columns that are noised, ``bounds`` (s, 2) their public bounds, ``features`` the D
    names. ``labels`` (n,) are places in the model's ``classes_``, ``groups`` (n,) any
    names. ``public`` (m, D) are records that cost nobody anything; ``train`` are the
    features and labels that the model's owner has, as ``fit`` takes them. With
    ``client_side`` clients can run the model. ``clip`` moves an output beyond the
    bounds to the edge. ``reference`` (n,) are the answers to agree with, as places,
    where they are not this model's own on ``records``.
    """

    model: Any
    records: FloatArray
    features: tuple[str, ...]
    sensitive: tuple[int, ...]
    bounds: FloatArray
    labels: Places | None = None
    groups: NDArray[np.str_] | None = None
    public: FloatArray | None = None
    train: tuple[FloatArray, NDArray[Any]] | None = None
    client_side: bool = False
    clip: bool = True
    reference: Places | None = None

    @property
    def n(self) -> int:
        """Number of records."""
        return len(self.records)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the sensitive features."""
        return tuple(self.features[place] for place in self.sensitive)

    @property
    def question(self) -> base.Question:
        """Question for an engine."""
        return base.Question(self.model, self.records, self.sensitive, self.bounds)

    @property
    def values(self) -> FloatArray:
        """Sensitive values, (n, s), clipped to the bounds."""
        return np.clip(self.records[:, list(self.sensitive)], *self.bounds.T)

    @property
    def prior(self) -> FloatArray:
        """Sensitive values of the public records, (m, s), clipped to the bounds."""
        if self.public is None:
            raise UserError(NO_PRIOR)
        return np.clip(self.public[:, list(self.sensitive)], *self.bounds.T)

    @property
    def fill_value(self) -> FloatArray:
        """Fill value of a withheld feature, (s,).

        The public median; without public records the middle of the bounds.
        """
        if self.public is None:
            return np.asarray(self.bounds.mean(axis=1))
        return np.asarray(np.median(self.prior, axis=0))

    @cached_property
    def classes(self) -> NDArray[Any]:
        """Classes of the model, by index."""
        return base.classes_of(
            self.model, base.predict_batched(self.model, self.records)
        )

    def answers(self, records: FloatArray, model: Any = None) -> Places:
        """Return answers as class indices, of another ``model`` if given."""
        predictions = base.predict_batched(
            self.model if model is None else model, records
        )
        return base.class_indices(self.classes, predictions)

    def withhold(self, records: FloatArray) -> FloatArray:
        """Return records with the public constants in the sensitive columns."""
        rows = np.array(records, dtype=np.float64)
        rows[:, list(self.sensitive)] = self.fill_value
        return rows

    def column_agreement(self) -> dict[str, tuple[float, float]]:
        """Return how often answers stay by what is done with each sensitive column.

        Where it alone is public and the others are withheld, and the other way round.
        """
        clean, bare = self.reference, self.withhold(self.records)
        clean = self.answers(self.records) if clean is None else clean
        result = {}
        for name, place in zip(self.names, self.sensitive, strict=True):
            column = np.arange(self.records.shape[1]) == place
            public = self.answers(np.where(column, self.records, bare)) == clean
            left_out = self.answers(np.where(column, bare, self.records)) == clean
            result[name] = float(public.mean()), float(left_out.mean())
        return result

    def put(self, records: FloatArray) -> NDArray[np.uint16]:
        """Return the answers with each public record's sensitive values in place.

        (n, m) places, for ``records`` (n, D); asked for in blocks.
        """
        prior, blocks = self.prior, []
        size = max(1, _BLOCK_ROWS // len(prior))
        for start in range(0, len(records), size):
            block = records[start : start + size]
            rows = np.repeat(block, len(prior), axis=0)
            rows[:, list(self.sensitive)] = np.tile(prior, (len(block), 1))
            blocks.append(self.answers(rows))
        answers = np.concatenate(blocks).reshape(len(records), len(prior))
        return answers.astype(np.uint16)


def make_setting(
    model: Any,
    records: ArrayLike,
    *,
    sensitive: Sequence[int | str],
    bounds: ArrayLike,
    features: Sequence[str] | None = None,
    **fields: Any,
) -> Setting:
    """Return a checked `Setting`; ``fields`` are its other fields.

    ``records`` (n, D) hold finite numbers; each of ``sensitive`` is a column 0..D-1, or
    its name, once; ``bounds`` (s, 2) have low < high. A model that is no fitted
    classifier of two classes or more, or anything else that is wrong, is a UserError.
    """
    rows = _check_records(model, records)
    n, width = rows.shape
    if features is None:
        features = getattr(model, "feature_names_in_", None)
    named = [f"x{i}" for i in range(width)] if features is None else features
    if len(named) != width or len(set(named)) < width:
        raise UserError(f"features holds {len(named)} names; give {width} different.")
    names = tuple(map(str, named))
    columns = tuple(
        names.index(validate.one_of(names, sensitive=column))
        if isinstance(column, str)
        else validate.at_least(0, sensitive=column)
        for column in sensitive
    )
    if not columns or len(set(columns)) < len(columns) or max(columns) >= width:
        raise UserError(
            f"sensitive is {validate.format_value(list(sensitive))}; give one or more"
            f" different columns, 0 to {width - 1}."
        )
    if fields.get("public") is not None:
        public = fields["public"] = validate.finite(public=fields["public"])
        if public.ndim != 2 or public.shape[1] != width or not len(public):
            raise UserError(
                f"public has shape {public.shape}; give (m, {width}), m >= 1."
            )
    for name in {"labels", "groups", "reference"} & fields.keys():
        if fields[name] is not None:
            fields[name] = values = np.asarray(fields[name])
            if values.shape != (n,):
                raise UserError(
                    f"{name} has shape {values.shape}; give one a record: ({n},)."
                )
    ends = validate.finite(bounds=bounds)
    if ends.shape != (len(columns), 2):
        raise UserError(
            f"bounds has shape {ends.shape}; give one (low, high) for each of the"
            f" {len(columns)} sensitive features."
        )
    if (wrong := ends[:, 0] >= ends[:, 1]).any():
        low, high = ends[wrong][0]
        raise UserError(f"bounds {low:g} to {high:g}: the first must be below.")
    return Setting(model, rows, names, columns, ends, **fields)


def _check_records(model: Any, records: ArrayLike) -> FloatArray:
    """Return the records (n, D), once the model is known to classify such rows."""
    from sklearn.base import is_regressor

    try:
        is_classifier = hasattr(model, "predict") and not is_regressor(model)
    except AttributeError:  # no estimator of scikit-learn: it is what it answers
        is_classifier = True
    if not is_classifier:
        raise UserError(
            f"{type(model).__name__} is no classifier: agreement is about classes, so"
            " give a fitted model whose predict returns one."
        )
    if len(getattr(model, "classes_", (0, 1))) < 2:
        raise UserError("the model knows one class only: its answer cannot change.")
    rows = validate.finite(records=records)
    width = getattr(model, "n_features_in_", None)
    if rows.ndim != 2 or not len(rows) or width not in {None, rows.shape[1]}:
        width_text = "D" if width is None else width
        raise UserError(
            f"records has shape {rows.shape}; give (n, {width_text}), n >= 1."
        )
    return rows


ReadMode = Literal["raw", "decode", "retrain", "without"]
READS = get_args(ReadMode)
# Ways to read what is sent, in the order in which they are looked at.
READ_ORDER: tuple[ReadMode, ...] = READS[:3]
# Deployments that are no mechanism on features.
WITHHOLD, OUTPUT = "withhold", "output"
# More levels than these say no more: a percent of the bounds.
MOST_LEVELS = 101
# So many shares are written out in words.
MOST_NAMED = 4


@dataclass(frozen=True)
class Deployment:
    """Noise on a record at a total ``epsilon``, and how the server reads it.

    ``mechanism`` is a name of `curvote.mechanisms`, ``withhold`` (epsilon 0) or
    ``output`` (randomised response on the classifier's own answer). ``split`` holds
    the share of epsilon of each sensitive feature, 0 for one that is withheld; None
    for a vector mechanism, whose epsilon is the record's. ``params`` are the
    mechanism's own. ``project`` says in words which public coordinates stand for
    features, empty where none do.
    """

    mechanism: str
    epsilon: float
    split: tuple[float, ...] | None = None
    read: ReadMode = "raw"
    delta: float = 0.0
    params: Mapping[str, Any] = field(default_factory=dict)
    project: str = ""

    @property
    def free(self) -> bool:
        """Whether the deployment is a floor: nothing is sent."""
        return self.mechanism == WITHHOLD

    def describe(self, names: tuple[str, ...]) -> str:
        """Return a description; ``names`` are the sensitive features'."""
        how = {"decode": ", decoded", "retrain": ", retrained"}.get(self.read, "")
        if self.free and self.read == "without":
            noise = "the model trained without them"
        elif self.free:
            noise = "nothing sent"
        elif self.mechanism == OUTPUT:
            noise = "randomised response on the answer"
        elif self.project:
            noise = f"{self.mechanism} on {self.project}"
        elif self.split is None:
            noise = f"{self.mechanism} on all jointly"
        else:
            noise = f"{self.mechanism}, {_describe_shares(self.split, names)}"
        return f"{noise}{how}"


def _describe_shares(split: tuple[float, ...], names: tuple[str, ...]) -> str:
    """Return the features' shares of epsilon as text, the largest first."""
    positive = sorted(
        ((share, name) for share, name in zip(split, names, strict=True) if share > 0),
        key=lambda pair: -pair[0],
    )
    if len(positive) == 1:
        return f"all on {positive[0][1]}"
    if len(positive) > MOST_NAMED and len(set(split)) == 1:
        return f"an equal share on each of {len(positive)}"
    listed = [f"{share:.2g} on {name}" for share, name in positive[:MOST_NAMED]]
    unlisted = len(positive) - len(listed)
    remainder = f" and less on {unlisted} others" if unlisted else ""
    return " and ".join(listed) + remainder


def check_deployment(deployment: Deployment, setting: Setting) -> Deployment:
    """Return the deployment; one that does not fit the setting is a UserError."""
    read = validate.one_of(READS, read=deployment.read)
    if read == "decode" and setting.public is None:
        raise UserError(NO_PRIOR)
    if read in {"retrain", "without"} and setting.train is None:
        raise UserError(NO_TRAIN)
    if deployment.free:
        return deployment
    validate.positive(epsilon=deployment.epsilon)
    if read == "without":
        raise UserError("The model trained without the features is sent none of them.")
    split, name, s = deployment.split, deployment.mechanism, len(setting.sensitive)
    if name == OUTPUT:
        return deployment
    if is_vector(name):
        if split is not None:
            raise UserError(f"{name} takes a record as a whole: leave out the split.")
        return deployment
    if split is None or len(split) != s:
        raise UserError(f"{name} needs a split: {s} shares of epsilon.")
    if min(split) < 0 or not math.isclose(sum(split), 1, abs_tol=1e-9):
        raise UserError(f"split is {split}; shares are 0 or more and add up to 1.")
    return deployment


def is_vector(name: str) -> bool:
    """Return whether the mechanism takes a record as a whole."""
    return issubclass(mechanism_class(name), VectorMechanism)


def level_count(epsilon: float) -> int:
    """Return the number of levels of a feature before randomised response.

    1 + e^(epsilon/2), rounded, from 2 to 101: as many as windows of the piecewise
    mechanism at that epsilon, so that a kept level is as likely as its window. Public:
    it depends on nothing but a feature's own epsilon (the largest, where they differ).
    """
    return min(MOST_LEVELS, max(2, 1 + round(math.exp(min(epsilon / 2, 10)))))


def deployment_channel(setting: Setting, deployment: Deployment) -> base.Channel:
    """Return the channel between record and model."""
    if deployment.mechanism in {WITHHOLD, OUTPUT}:
        return base.Channel([], setting.bounds, setting.fill_value)
    s = len(setting.sensitive)
    params = dict(deployment.params)
    if deployment.delta:
        params["delta"] = deployment.delta
    if issubclass(mechanism_class(deployment.mechanism), LabelMechanism):
        largest = max(deployment.split or [1 / s])
        params.setdefault("n_classes", level_count(deployment.epsilon * largest))
    return base.make_channel(
        deployment.mechanism,
        epsilon=deployment.epsilon,
        bounds=setting.bounds,
        fill_value=setting.fill_value,
        split=deployment.split,
        clip=setting.clip,
        **params,
    )


def floor_deployments(setting: Setting) -> list[Deployment]:
    """Return the floors that can be known for a setting.

    The public median in the sensitive features' place; with public records the class
    that most of them give, put in their place; with training data the model trained
    without them.
    """
    none = (0.0,) * len(setting.sensitive)
    raw = Deployment(WITHHOLD, 0.0, none)
    decoded = [replace(raw, read="decode")] if setting.public is not None else []
    trained = [replace(raw, read="without")] if setting.train is not None else []
    return [raw, *decoded, *trained]


def answers_without(setting: Setting) -> Places:
    """Return the answers of the model trained without the sensitive features, (n,).

    A constant stands in their place in training and in use, so that pipelines which
    name or count columns still fit; nothing can be learnt from a constant.
    """
    if setting.train is None:
        raise UserError(NO_TRAIN)
    features, targets = setting.train
    fitted = fit_again(setting.model, setting.withhold(features), targets)
    return setting.answers(setting.withhold(setting.records), fitted)


def fit_again(model: Any, features: FloatArray, targets: NDArray[Any]) -> Any:
    """Return a model with the same parameters, fitted on other data.

    UserError for what is no estimator of scikit-learn.
    """
    from sklearn.base import clone

    try:
        copy = clone(model)
    except TypeError:
        raise UserError(
            f"{type(model).__name__} cannot be fitted again: retraining needs a"
            " scikit-learn estimator (get_params and fit)."
        ) from None
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return copy.fit(features, targets)
    import pandas as pd

    return copy.fit(pd.DataFrame(features, columns=list(names)), targets)
