"""What is known of a model and records whatever the mechanism and epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.entropy import Entropy
from curvote.errors import UserError
from curvote.utility.deployments.floors import withheld, without
from curvote.utility.engines.base import Engine, Surface
from curvote.utility.engines.choosing import engine as engine_named
from curvote.utility.engines.choosing import engine_for
from curvote.utility.likeness import weights
from curvote.utility.robustness.box import Box, box
from curvote.utility.robustness.published import as_published
from curvote.utility.setting import NO_PRIOR, Places, Setting
from curvote.validate import FloatArray

Wanted = Literal["auto", "exact", "bracket", "draws"]
_SURFACE, _BOX, _PUBLISHED = "surface.", "box.", "published."


@dataclass(frozen=True)
class Known:
    """A surface and the answers that every deployment is compared with.

    ``clean`` (n,) are the answers to agree with and ``withheld`` (n,) those with the
    public constants in place. ``public`` (n, m) are the answers with each public
    record's sensitive values in place, None without public records, and ``weights``
    (n, m) what each of them weighs, None for all alike; ``without`` (n,) are those of
    the model trained without the features, None without training data.
    ``why`` says why better engines refused, empty if none did. ``box`` is where answers
    certainly stay, None where the surface cannot tell; ``published`` the boxes of the
    published procedure, None where they were not asked for.
    """

    engine: str
    why: str
    surface: Surface
    clean: Places
    withheld: Places
    public: NDArray[np.uint16] | None
    without: Places | None
    weights: FloatArray | None = None
    box: Box | None = None
    published: Box | None = None

    @property
    def n_classes(self) -> int:
        """The number of the model's classes."""
        return self.surface.n_classes

    @property
    def votes(self) -> NDArray[np.uint16]:
        """``public``; UserError where there are no public records."""
        if self.public is None:
            raise UserError(NO_PRIOR)
        return self.public

    def held(self, which: slice = slice(None)) -> list[FloatArray]:
        """Return for each class the weights of the public values that give it.

        K arrays (n, m); UserError where there are no public records.
        """
        votes = self.votes[which]
        weight = 1.0 if self.weights is None else self.weights[which]
        return [(votes == each) * weight for each in range(self.n_classes)]

    @cached_property
    def usual(self) -> Places:
        """The class of most weight among public values, (n,); ties: the first."""
        scores = [each.sum(axis=1) for each in self.held()]
        return np.asarray(np.argmax(scores, axis=0), dtype=np.int64)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `restored` needs, as arrays that a file can hold."""
        kept: dict[str, NDArray[Any] | None] = {
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
            _BOX: _fields(self.box),
            _PUBLISHED: _fields(self.published),
        }
        inner = {pre + key: a for pre, part in parts.items() for key, a in part.items()}
        return inner | {key: a for key, a in kept.items() if a is not None}


def _fields(box: Box | None) -> dict[str, NDArray[Any]]:
    return {} if box is None else {key: np.asarray(a) for key, a in vars(box).items()}


def known(
    setting: Setting,
    *,
    evidence: Wanted = "auto",
    engine: Engine | None = None,
    published: Entropy | None = None,
) -> Known:
    """Return what is known; ``engine`` is chosen by ``evidence`` where not given.

    With entropy for it the boxes are ``published``, too: 516,446 queries a record and
    more. UserError where no engine can give the evidence asked for.
    """
    why = ""
    if engine is None:
        engine, why = engine_for(setting.question, evidence)
    surface = engine.surface(setting.question)
    clean = surface.clean if setting.reference is None else setting.reference
    return Known(
        engine.name,
        why,
        surface,
        np.asarray(clean),
        withheld(setting),
        None if setting.public is None else setting.put(setting.records),
        None if setting.train is None else without(setting),
        weights(setting),
        _box(setting, surface),
        None if published is None else as_published(setting.question, published),
    )


def _box(setting: Setting, surface: Surface) -> Box | None:
    try:
        return box(surface, setting.values, bounds=setting.bounds)
    except NotImplementedError:
        return None


def restored(setting: Setting, arrays: dict[str, NDArray[Any]]) -> Known:
    """Return the `Known` whose ``arrays`` are given, with the same setting."""
    engine = engine_named(str(arrays["engine"]))
    own, inner, published = (
        _under(prefix, arrays) for prefix in (_SURFACE, _BOX, _PUBLISHED)
    )
    return Known(
        engine.name,
        str(arrays["why"]),
        engine.restored(setting.question, own),
        arrays["clean"],
        arrays["withheld"],
        arrays.get("public"),
        arrays.get("without"),
        arrays.get("weights"),
        Box(**inner) if inner else None,
        Box(**published) if published else None,
    )


def _under(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {
        key.removeprefix(prefix): array
        for key, array in arrays.items()
        if key.startswith(prefix)
    }
