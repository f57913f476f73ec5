"""Tests that the author of a plug-in runs: of a mechanism, a learner, a data set."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from curvote.audit.verdict import run
from curvote.base.errors import UserError
from curvote.checks.mechanism_subject import subject_of
from curvote.data import lookup
from curvote.learning.learners.registry import fit
from curvote.mechanisms.base import ScalarMechanism
from curvote.mechanisms.factory import make

_SEED: Final = 20_240_601
GRID_STEP: Final = 2.0**-20  # inputs are rounded to it


def check_mechanism(
    name: str,
    epsilons: Sequence[float] = (0.5, 2.0),
    samples: int = 100_000,
    **params: Any,
) -> None:
    """Try to break a mechanism's claims, as `curvote audit` does with curvote's own.

    Parameters
    ----------
    name : str
        An entry point of the group ``curvote.mechanisms``, or ``package.module:Class``.
    epsilons : sequence of float, default=(0.5, 2.0)
        The budgets to try.
    samples : int, default=100_000
        Draws for each input that is tried; 0 looks at the declared law alone.
    **params
        The mechanism's own parameters.

    Raises
    ------
    AssertionError
        A claim does not hold: each check that failed, and why. A sound mechanism fails
        with probability 1e-6 at most for each epsilon.
    UserError
        The mechanism cannot be made.
    """
    faults = []
    for epsilon in epsilons:
        mechanism = make(name, epsilon=epsilon, **params)
        lacking = [key for key in ("name", "unbiased") if not hasattr(mechanism, key)]
        _refuse(name, [f"its class states no {key}" for key in lacking])
        if isinstance(mechanism, ScalarMechanism):
            x = np.linspace(mechanism.low, mechanism.high, 201)
            gap = float(np.abs(mechanism.mean(x) - x).max())
            if mechanism.unbiased and gap > GRID_STEP:
                faults.append(f"epsilon {epsilon:g}: unbiased, but off by {gap:.3g}")
        subject = subject_of(mechanism, name, params)
        (row,) = run(subject, samples=samples)
        faults += [f"epsilon {epsilon:g}, {n}: {row.checks[n]}" for n in row.caught_by]
    _refuse(name, faults)


def check_learner(name: str, **params: Any) -> None:
    """Fit a learner to easy, degenerate and huge problems.

    Parameters
    ----------
    name : str
        An entry point of the group ``curvote.learners``, or ``package.module:name``.
    **params
        The learner's own parameters.

    Raises
    ------
    AssertionError
        It does not separate two far classes; it is not finite, warns, or changes with
        the order of problems where points coincide, are collinear or huge, or where
        there is one class.
    UserError
        There is no such learner, or it takes no such parameter.
    """
    rng, faults = np.random.default_rng(_SEED), []
    labels = np.where(rng.random((3, 40)) < 0.5, -1.0, 1.0)
    apart = 6 * labels[:, :, None] + rng.normal(size=(3, 40, 4))
    problems = {
        "far classes": (apart, labels),
        "one class": (apart, np.ones_like(labels)),
        "equal points": (np.ones_like(apart), labels),
        "collinear points": (apart[..., :1] * np.arange(1.0, 5), labels),
        "huge reports": (apart * 1e90, labels),
        "tiny reports": (apart * 1e-90, labels),
        "two points": (apart[:, :2], np.array([[-1.0, 1.0]] * 3)),
    }
    for problem, (reports, answers) in problems.items():
        try:
            with np.errstate(all="raise", under="ignore"):
                fits = fit(name, reports, answers, **params)
                again = fit(name, reports[::-1], answers[::-1], **params)
        except UserError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, the author hears it
            faults.append(f"{problem}: {type(error).__name__}: {error}")
            continue
        if fits.coef.shape != (3, 4) or fits.intercept.shape != (3,):
            faults.append(f"{problem}: coef is {fits.coef.shape}, not (3, 4)")
        elif not np.allclose(fits.coef, again.coef[::-1], rtol=1e-6):
            faults.append(f"{problem}: a problem's fit depends on those beside it")
        elif problem == "far classes":
            scores = np.einsum("bnd,bd->bn", reports, fits.coef)
            right = np.sign(scores + fits.intercept[:, None]) == answers
            if right.mean() < 0.95:
                faults.append(f"{problem}: {right.mean():.0%} of the points are right")
    _refuse(name, faults)


def check_dataset(name: str, n: int = 200, **parameters: Any) -> None:
    """Look at the metadata and the clients of a data set.

    Parameters
    ----------
    name : str
        An entry point of the group ``curvote.datasets``, or ``package.module:OBJECT``.
    n : int, default=200
        How many clients a simulated one is asked for; of another all are read.
    **parameters
        What ``source:`` of a pipeline would say beside the name.

    Raises
    ------
    AssertionError
        Public metadata is missing, clients are not reproducible, or their curves,
        labels and classes do not fit what the metadata says.
    UserError
        There is no such data set, or it takes no such parameter.
    """
    dataset, settings = lookup.resolve_source({"name": name, **parameters})
    paths: dict[str, Path] = {}
    facts: dict[str, Any] = dataset.facts(settings, paths)
    faults: list[str] = []
    missing = {"title", "grid", "domain", "unit", "classes"} - set(facts)
    _refuse(name, [f"facts lack {key}" for key in sorted(missing)])

    def clients() -> dict[str, Any]:
        if dataset.SIMULATED:
            rows = dataset.clients(settings, n, np.random.default_rng(_SEED))
        else:
            rows = dataset.clients(settings, paths)
        return {column: np.asarray(values) for column, values in rows.items()}

    columns, again = clients(), clients()
    missing = {"client_id", "label", "group", "curve"} - set(columns)
    _refuse(name, [f"clients lack {column}" for column in sorted(missing)])
    points, classes = len(facts["grid"]), facts["classes"]
    lengths = {column: len(values) for column, values in columns.items()}
    if len({*lengths.values(), *([n] if dataset.SIMULATED else [])}) > 1:
        faults.append(f"columns have other lengths than n and each other: {lengths}")
    if columns["curve"].shape[1:] != (points,):
        faults.append(f"curves are {columns['curve'].shape[1:]}, the grid is {points}")
    if not {*columns["label"].tolist()} <= set(range(len(classes))):
        faults.append(f"labels are not places in the classes {classes}")
    if any(not np.array_equal(values, again[c]) for c, values in columns.items()):
        faults.append("the same generator gives other clients")
    _refuse(name, faults)


def _refuse(name: str, faults: Sequence[str]) -> None:
    if faults:
        raise AssertionError("\n  ".join([f"{name}:", *faults]))
