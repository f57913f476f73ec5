"""Profile of a model: what is known of it, and what public records weigh in a prior."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.base.entropy import Entropy
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.systems.utility.method import deployment, robustness
from curvote.systems.utility.method.engines.base import Engine, Surface, choose_engine
from curvote.systems.utility.method.engines.base import make_engine as engine_named

# How far alike reaches, in standard deviations of the public records' other features.
REACHES = (1.0, 0.6, 0.4, 0.3)
# What a record that is not alike weighs still.
_UNLIKE_WEIGHT = 1e-3
# Standard errors by which it must guess better than a prior of all alike.
CLEAR_ERRORS = 2.0
# Public records on which the reach is chosen.
_SAMPLE_SIZE = 400


def prior_weights(setting: deployment.Setting) -> FloatArray | None:
    """Return the weight of each public record for each record, (n, m).

    exp(-distance^2 / (2 reach^2)), the distance a root mean square over the other
    features, each in public standard deviations. The reach is the one of `REACHES`
    with which public records' answers are guessed best from the other public records,
    nothing being sent; None, all weigh alike, where no reach does clearly better. The
    server sees the other features as they are, and they tell about the sensitive ones
    (who is married is rarely a child): using them costs no epsilon.
    """
    public = setting.public
    if public is None or not setting.alike:
        return None
    insensitive = np.setdiff1d(np.arange(public.shape[1]), setting.sensitive)
    columns = [int(column) for column in insensitive if np.ptp(public[:, column]) > 0]
    if not columns or len(public) < 2:
        return None
    sample = public[:_SAMPLE_SIZE]
    squared = _distances(sample[:, columns], public[:, columns])
    np.fill_diagonal(squared, np.inf)  # no record is its own prior
    votes, clean = setting.put(sample), setting.answers(sample)
    guesses = []
    for reach in (np.inf, *REACHES):
        # Whether the prior's likeliest class is each record's clean one.
        weights = _kernel_weights(squared, reach)
        scores = [((votes == c) * weights).sum(axis=1) for c in range(votes.max() + 1)]
        guesses.append(np.asarray(np.argmax(scores, axis=0) == clean))
    plain, *guesses = guesses
    best = int(np.argmax([right.sum() for right in guesses]))
    gain = guesses[best].sum() - plain.sum()
    differ = int(np.count_nonzero(guesses[best] != plain))
    if not gain > CLEAR_ERRORS * np.sqrt(differ):
        return None
    squared = _distances(setting.records[:, columns], public[:, columns])
    return _kernel_weights(squared, REACHES[best])


def _distances(records: FloatArray, public: FloatArray) -> FloatArray:
    """Return mean squared distances in public standard deviations, (n, m)."""
    spread = public.std(axis=0)
    scaled_records, scaled_public = records / spread, public / spread
    squares = (scaled_records**2).sum(axis=1)[:, None] + (scaled_public**2).sum(axis=1)
    squares = squares - 2 * scaled_records @ scaled_public.T
    return np.asarray(np.maximum(squares, 0) / len(spread))


def _kernel_weights(squared: FloatArray, reach: float) -> FloatArray:
    """Return Gaussian weights of squared distances, rows adding to 1."""
    finite = np.isfinite(squared)
    near = np.exp(-np.where(finite, squared, 0.0) / (2 * reach**2))
    weights_raw = np.where(finite, near + _UNLIKE_WEIGHT, 0.0)
    return np.asarray(weights_raw / weights_raw.sum(axis=1, keepdims=True))


EvidenceWanted = Literal["auto", "exact", "bracket", "draws"]
_SURFACE, _BOX, _PUBLISHED = "surface.", "box.", "published."


@dataclass(frozen=True)
class Profile:
    """Surface of a model, and the answers that deployments are compared with.

    ``clean`` (n,) are the answers to agree with and ``withheld`` (n,) those with the
    public constants in place. ``public`` (n, m) are the answers with each
    public record's sensitive values in place, None without public records, and
    ``weights`` (n, m) what each of them weighs, None for all alike; ``without`` (n,)
    are those of the model trained without the features, None without training data.
    ``why`` says why better engines refused, empty if none did. ``box`` is where answers
    certainly stay, None where the surface cannot tell; ``published`` the boxes of the
    published procedure, None where they were not asked for.
    """

    engine: str
    why: str
    surface: Surface
    clean: deployment.Places
    withheld: deployment.Places
    public: NDArray[np.uint16] | None
    without: deployment.Places | None
    weights: FloatArray | None = None
    box: robustness.Box | None = None
    published: robustness.Box | None = None

    @property
    def n_classes(self) -> int:
        """Number of the model's classes."""
        return self.surface.n_classes

    @property
    def votes(self) -> NDArray[np.uint16]:
        """Answers at public values; without public records a UserError."""
        if self.public is None:
            raise UserError(deployment.NO_PRIOR)
        return self.public

    def class_weights(self, which: slice = slice(None)) -> list[FloatArray]:
        """Return for each class the weights (n, m) of its public values.

        K arrays (n, m); UserError where there are no public records.
        """
        votes = self.votes[which]
        weight = 1.0 if self.weights is None else self.weights[which]
        return [(votes == place) * weight for place in range(self.n_classes)]

    @cached_property
    def usual_class(self) -> deployment.Places:
        """Class of most weight among public values, (n,)."""
        scores = [weights.sum(axis=1) for weights in self.class_weights()]
        return np.asarray(np.argmax(scores, axis=0), dtype=np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays that `restore_profile` needs."""
        optional: dict[str, NDArray[Any] | None] = {
            "engine": np.array(self.engine),
            "why": np.array(self.why),
            "clean": self.clean,
            "withheld": self.withheld,
            "public": self.public,
            "without": self.without,
            "weights": self.weights,
        }
        parts = {
            _SURFACE: self.surface.arrays(),
            _BOX: _box_arrays(self.box),
            _PUBLISHED: _box_arrays(self.published),
        }
        inner = {pre + key: a for pre, part in parts.items() for key, a in part.items()}
        return inner | {key: a for key, a in optional.items() if a is not None}


def _box_arrays(box: robustness.Box | None) -> dict[str, NDArray[Any]]:
    """Return a box's fields as arrays."""
    return {} if box is None else {key: np.asarray(a) for key, a in vars(box).items()}


def build_profile(
    setting: deployment.Setting,
    *,
    evidence: EvidenceWanted = "auto",
    engine: Engine | None = None,
    published: Entropy | None = None,
) -> Profile:
    """Return the profile of a setting's model, by the engine chosen for it.

    With entropy for it the boxes are ``published``, too: 516,446 queries a record and
    more. UserError where no engine can give the evidence asked for.
    """
    why = ""
    if engine is None:
        engine, why = choose_engine(setting.question, evidence)
    surface = engine.surface(setting.question)
    clean = surface.clean if setting.reference is None else setting.reference
    return Profile(
        engine.name,
        why,
        surface,
        np.asarray(clean),
        deployment.answers_withheld(setting),
        None if setting.public is None else setting.put(setting.records),
        None if setting.train is None else deployment.answers_without(setting),
        prior_weights(setting),
        robustness.certified_box(surface, setting.question),
        None
        if published is None
        else robustness.published_boxes(setting.question, published),
    )


def restore_profile(
    setting: deployment.Setting, arrays: dict[str, NDArray[Any]]
) -> Profile:
    """Return the profile built again from its ``arrays``."""
    engine = engine_named(str(arrays["engine"]))
    surface_arrays, inner, published = (
        {key.removeprefix(pre): a for key, a in arrays.items() if key.startswith(pre)}
        for pre in (_SURFACE, _BOX, _PUBLISHED)
    )
    return Profile(
        engine.name,
        str(arrays["why"]),
        engine.restored(setting.question, surface_arrays),
        arrays["clean"],
        arrays["withheld"],
        arrays.get("public"),
        arrays.get("without"),
        arrays.get("weights"),
        robustness.Box(**inner) if inner else None,
        robustness.Box(**published) if published else None,
    )
