"""A realistic report page, whole and in parts that are quick to draw."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd

from curvote.base.classes import Classes
from curvote.chain.system import MessageDescription
from curvote.messages.measures import MISCLASSIFICATION
from curvote.report.data import SCORE_COLUMNS, PageData, Section
from curvote.systems.common.page.curves import Clients, Curves, CurveSample
from curvote.systems.common.page.utilities import NonePassed, Utilities
from curvote.systems.volunteers.page import Volunteers

LEARNERS = ("logistic", "cg", "centroid")
EPSILONS = (0.1, 0.5, 1.0, 5.0)
# How far each method gets from 50 % towards the Bayes error, by epsilon.
PROGRESS = {
    "mrma": (0.08, 0.65, 0.95, 0.99),
    "ma": (0.04, 0.55, 0.88, 0.985),
    "mr": (0.03, 0.25, 0.62, 0.94),
    "best_single": (0.03, 0.4, 0.82, 0.96),
    "weak": (0.005, 0.04, 0.15, 0.93),
    "all_data": (0.01, 0.1, 0.45, 0.97),
    "averaging": (0.008, 0.09, 0.4, 0.96),
    "voting": (0.006, 0.08, 0.35, 0.955),
}
HANDICAP = {"logistic": 0.12, "cg": 0.2, "centroid": 0.0}


def make_scores() -> pd.DataFrame:
    """Scores like those of the simulated pipeline."""
    rows: list[dict[str, Any]] = []
    for k, epsilon in enumerate(EPSILONS):
        for method, progress in PROGRESS.items():
            for learner in LEARNERS:
                part = max(0.0, progress[k] * (1 - HANDICAP[learner] * (1.4 - k / 3)))
                passes = method in ("mrma", "ma")
                rows.append(
                    make_score(epsilon, learner, method, 0.5 - 0.4 * part)
                    | {"none_passed": 0.48 * (k == 2) * passes if passes else None}
                )
        rows.append(
            make_score(epsilon, None, "majority", (0.495, 0.484, 0.481, 0.48)[k])
        )
    return pd.DataFrame(rows)[[*SCORE_COLUMNS, "none_passed"]]


def make_score(
    epsilon: float, learner: str | None, method: str, error: float
) -> dict[str, Any]:
    """One line of the score table; no learner for the majority."""
    return {
        "pipeline": "simulated",
        "protocol": "mrma",
        "level": epsilon,
        "learner": learner,
        "method": method,
        "metric": "misclassification",
        "value": error,
        "se": 0.0008 + 0.012 * (error - 0.1),
        "replicates": 100,
        "none_passed": None,
    }


def make_utilities(each: int = 400) -> pd.DataFrame:
    """Estimated utilities on their lattice: 50 noised votes for each classifier."""
    draw = np.random.default_rng(5)
    tables = []
    for epsilon in EPSILONS:
        q = 1 / (1 + np.exp(-epsilon))
        for learner in LEARNERS:
            gain = 0.38 * np.tanh(epsilon) * (1 - HANDICAP[learner])
            sign = draw.choice([-1, 1], each, p=[0.3, 0.7])
            right = np.clip(0.5 + sign * gain + draw.normal(0, 0.07, each), 0.05, 0.93)
            votes = draw.binomial(50, q * right + (1 - q) * (1 - right)) / 50
            utility = (votes + q - 1) / (2 * q - 1)
            tables.append(
                pd.DataFrame(
                    {"epsilon": epsilon, "learner": learner, "utility": utility}
                ).assign(cutoff=0.8)
            )
    return pd.concat(tables, ignore_index=True)


def make_sample(n: int = 80) -> CurveSample:
    """Simulated curves of two classes and a polynomial projection of them."""
    draw = np.random.default_rng(7)
    grid = np.linspace(0, 1, 100)
    labels = np.arange(n) % 2
    waves = np.stack([np.cos(np.pi * j * grid) for j in range(12)])
    weights = draw.normal(0, 1, (n, 12)) / np.arange(1, 13)
    weights[:, 1] += np.where(labels == 1, 0.9, -0.9)
    curves = weights @ waves
    powers = np.stack([grid**j for j in range(4)])
    coefficients = curves @ np.linalg.pinv(powers)
    return CurveSample(
        grid=grid,
        unit="t",
        curves=curves,
        fitted=coefficients @ powers,
        z=np.tanh(coefficients / coefficients.std(axis=0)),
        labels=labels,
        classes=Classes(("negative", "positive")),
        basis="4 cubic B-splines",
        rescale="tanh",
        who="simulated",
    )


RELEASES = (
    MessageDescription(
        "each training client",
        "4 noised coordinates and a noised label",
        "laplace, binary_rr",
        "each coordinate and the label get epsilon/5",
        epsilon="epsilon in all",
    ),
    MessageDescription(
        "each vote client",
        "one bit: was this classifier right for me?",
        "binary_rr",
        "flipped with probability 1/(1 + e^epsilon)",
    ),
    MessageDescription(
        "each client",
        "a noised report for all data, averaging and voting",
        "laplace, binary_rr",
        epsilon="epsilon in all",
        study_only=True,
    ),
    MessageDescription(
        "each client", "a noised label", "binary_rr", epsilon=1.25, study_only=True
    ),
)


CLIENTS = Clients(
    {
        "train": (500, 500, 500),
        "vote": (2500, 2500, 2500),
        "test": (500, 497, 500),
    }
)


def make_sections(sample: CurveSample | None = None) -> list[Section]:
    """What MRMA's page shows beside scores."""
    cutoff, utilities = NonePassed(0.8, make_scores()), Utilities(make_utilities())
    return [
        cutoff,
        utilities,
        Curves(sample, 0),
        Volunteers(0, alone=False, joined=False),
        CLIENTS,
    ]


def make_page(**changes: Any) -> PageData:
    """A realistic page, with ``changes``."""
    data = PageData(
        pipeline="simulated",
        title="Simulated curves (MRMA, section 6)",
        replicates=100,
        seed=20240801,
        protocol="mrma",
        generated="2024-08-01",
        run_id="20240801-060000-ab12",
        scores=make_scores(),
        metrics=[MISCLASSIFICATION],
        main={"mrma": ["mrma"]},
        sections=make_sections(make_sample()),
        releases=RELEASES,
        public=(
            "Basis: 4 cubic B-splines on [0, 1], from pipelines.yaml.",
            "Rescaling: tanh with centre 0 and scale 1, from pipelines.yaml.",
        ),
        notes=("The unit of privacy is one curve.",),
        bounds={"misclassification": 0.1},
    )
    return dataclasses.replace(data, **changes)


def section(data: PageData, name: str) -> Any:
    """Return a section of a page."""
    return {each.name: each for each in data.sections}[name]


def small(**changes: Any) -> PageData:
    """A page with no figures, quick to write."""
    nothing = {"scores": make_scores().iloc[:0], "sections": [Curves(None, 0)]}
    return make_page(**(nothing | changes))


def one_learner(**changes: Any) -> PageData:
    """A page with one learner and no curves, quick to draw."""
    scores = make_scores()
    mine = scores[scores["learner"].isna() | (scores["learner"] == "cg")]
    return make_page(**({"sections": [Curves(None, 0)], "scores": mine} | changes))
