"""The simulated target and its sources follow the paper's regression functions."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from curvote.data import lookup
from curvote.data.simulation import records


def drawn(seed: int = 1, **said: Any) -> dict[str, Any]:
    """Return the records of all servers."""
    chosen = records.POSTERIOR_DRIFT.Parameters.model_validate({"n": 500} | said)
    return records.POSTERIOR_DRIFT.clients(
        chosen, records.POSTERIOR_DRIFT.size(chosen), np.random.default_rng(seed)
    )


def test_the_regression_functions_are_those_of_the_paper() -> None:
    """By its formula, point by point; 1 and 0 where the formula goes beyond."""
    for x1, x2 in np.random.default_rng(3).random((200, 2)):
        root = abs(x1 - 0.5) ** 0.25 * abs(x2 - 0.5) ** 0.25
        target = min(1, max(0, 0.5 + np.sign((x1 - 0.5) * (x2 - 0.5)) * root))
        for gamma in (0.25, 0.5, 1.5, 4):
            away = np.sign(target - 0.5) * abs(target - 0.5) ** gamma
            source = min(1, max(0, 0.5 + away))
            found = records.regression(np.array([[x1, x2]]), gamma)
            assert found == pytest.approx(source)
        assert records.regression(np.array([[x1, x2]]), 1) == pytest.approx(target)


def test_the_bayes_error_is_that_of_the_target() -> None:
    """The integral of min(eta, 1 - eta) over the square, by its midpoints."""
    middle = (np.arange(1000) + 0.5) / 1000
    eta = records.regression(
        np.stack(np.meshgrid(middle, middle), -1).reshape(-1, 2), 1
    )
    assert np.minimum(eta, 1 - eta).mean() == pytest.approx(
        records.BAYES_ERROR, abs=1e-4
    )
    assert (
        records.POSTERIOR_DRIFT.facts(records.POSTERIOR_DRIFT.Parameters(n=5))[
            "bayes_error"
        ]
        == records.BAYES_ERROR
    )


@pytest.mark.parametrize(
    ("said", "sizes"),
    [
        ({"n": 500}, {"target": 1500, "source1": 500}),
        ({"n": 7, "m": 0, "test": 0}, {"target": 7}),
        (
            {"total": 500, "m": 2, "test": 9},
            {"target": 176, "source1": 167, "source2": 166},
        ),
        ({"total": 3, "m": 2, "test": 1}, {"target": 2, "source1": 1, "source2": 1}),
    ],
)
def test_servers_have_the_sizes_that_are_stated(said, sizes):
    """The same before and after drawing; the target's test records come on top."""
    source = {"name": "posterior_drift"} | said
    dataset, chosen = lookup.resolve_source(source)
    assert lookup.servers(source) == dataset.facts(chosen)["servers"] == sizes
    assert not lookup.drawn_per_server(source)
    columns = records.POSTERIOR_DRIFT.clients(
        chosen, dataset.size(chosen), np.random.default_rng(1)
    )
    assert np.bincount(columns["group"]).tolist() == [*sizes.values()]
    assert dataset.size(chosen) == len(columns["label"]) == len({*columns["client_id"]})


def test_only_the_sources_labels_depend_on_gamma() -> None:
    """Common numbers: gamma changes labels of sources alone; more servers, none."""
    one, other = drawn(gamma=0.5, m=2), drawn(gamma=4, m=2)
    assert (one["curve"] == other["curve"]).all()
    changed = one["label"] != other["label"]
    assert not changed[one["group"] == 0].any()
    assert changed[one["group"] > 0].any()
    more = drawn(gamma=0.5, m=3)
    assert (more["label"][: len(one["label"])] == one["label"]).all()


def test_labels_are_drawn_by_the_regression_functions() -> None:
    """No surprise is left in any direction (5 errors), at target and sources."""
    columns = drawn(n=20_000, gamma=0.5, test=0)
    assert ((columns["curve"] >= 0) & (columns["curve"] < 1)).all()
    for group, gamma in ((0, 1), (1, 0.5)):
        mine = columns["group"] == group
        eta = records.regression(columns["curve"][mine], gamma)
        away = (columns["label"][mine] - eta)[:, None] * [1, -1] * [1, 1]
        away[:, 1] *= eta - eta.mean()
        error = away.std(axis=0) / np.sqrt(mine.sum())
        assert (np.abs(away.mean(axis=0)) < 5 * error).all()


def test_sources_are_clearer_the_smaller_gamma_is() -> None:
    """Posterior drift: |eta_S - 1/2| falls with gamma, and the boundary stays."""
    x = np.random.default_rng(5).random((500, 2))
    curves = [records.regression(x, gamma) - 0.5 for gamma in (0.25, 0.5, 1, 1.5, 4)]
    for one, other in pairwise(curves):
        assert (np.abs(one) >= np.abs(other)).all()
        assert (np.sign(one) == np.sign(other)).all()
