"""What is known of a model and records whatever the mechanism and epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from curvote.utility.deployments.floors import withheld, without
from curvote.utility.engines.base import Engine, Surface
from curvote.utility.engines.registry import ENGINES
from curvote.utility.setting import Places, Setting

Wanted = Literal["auto", "exact", "bracket", "draws"]
_SURFACE = "surface."
# Rows that a model is asked for at once: 100 columns of them are 200 MB.
_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Known:
    """A surface and the answers that every deployment is compared with.

    ``clean`` (n,) are the answers to agree with and ``withheld`` (n,) those with the
    public constants in place. ``public`` (n, m) are the answers with each public
    record's sensitive values in place, None without public records; ``without`` (n,)
    those of the model trained without the features, None without training data.
    ``why`` says why better engines refused, empty if none did.
    """

    engine: str
    why: str
    surface: Surface
    clean: Places
    withheld: Places
    public: NDArray[np.uint16] | None
    without: Places | None

    @property
    def n_classes(self) -> int:
        """The number of the model's classes."""
        return self.surface.n_classes

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what `restored` needs, as arrays that a file can hold."""
        kept: dict[str, NDArray[Any] | None] = {
            "engine": np.array(self.engine),
            "why": np.array(self.why),
            "clean": self.clean,
            "withheld": self.withheld,
            "public": self.public,
            "without": self.without,
        }
        surface = {_SURFACE + key: a for key, a in self.surface.arrays().items()}
        return surface | {key: a for key, a in kept.items() if a is not None}


def known(
    setting: Setting, *, evidence: Wanted = "auto", engine: Engine | None = None
) -> Known:
    """Return what is known; ``engine`` is chosen by ``evidence`` where not given.

    UserError where no engine can give the evidence asked for.
    """
    why = ""
    if engine is None:
        choosing = import_module("curvote.utility.engines.choosing")
        engine, why = choosing.engine_for(setting.question, evidence)
    surface = engine.surface(setting.question)
    clean = surface.clean if setting.reference is None else setting.reference
    return Known(
        engine.name,
        why,
        surface,
        np.asarray(clean),
        withheld(setting),
        None if setting.public is None else _public(setting),
        None if setting.train is None else without(setting),
    )


def restored(setting: Setting, arrays: dict[str, NDArray[Any]]) -> Known:
    """Return the `Known` whose ``arrays`` are given, with the same setting."""
    engine = engine_named(str(arrays["engine"]))
    own = {
        key.removeprefix(_SURFACE): array
        for key, array in arrays.items()
        if key.startswith(_SURFACE)
    }
    return Known(
        engine.name,
        str(arrays["why"]),
        engine.restored(setting.question, own),
        arrays["clean"],
        arrays["withheld"],
        arrays.get("public"),
        arrays.get("without"),
    )


def engine_named(name: str) -> Engine:
    """Return the engine of that name in the registry."""
    module, cls = ENGINES[name].split(":")
    made: Engine = getattr(import_module(module), cls)()
    return made


def _public(setting: Setting) -> NDArray[np.uint16]:
    """Return the answers of n records at m public values, (n, m), a block a time."""
    prior = setting.prior
    size = max(1, _AT_ONCE // len(prior))
    blocks = [
        _answered(setting, slice(start, start + size))
        for start in range(0, setting.n, size)
    ]
    return np.concatenate(blocks).astype(np.uint16)


def _answered(setting: Setting, which: slice) -> Places:
    prior, records = setting.prior, setting.records[which]
    rows = np.repeat(records, len(prior), axis=0)
    rows[:, list(setting.sensitive)] = np.tile(prior, (len(records), 1))
    return setting.answers(rows).reshape(len(records), len(prior))
