"""Protocol `whitened`: volunteers' numbers make the coordinates, evidence the prior."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from curvote.base.errors import UserError
from curvote.learning.directions import NoisyMoments, SecondMoment
from curvote.learning.whitened import half_whitening, posterior_mean, weigh_priors
from curvote.messages.roles import split_roles
from curvote.pipeline.config.file import PipelinesFile
from curvote.pipeline.run.results import final_views
from curvote.report.page import load_page_data, render_report
from tests import plain

GIVEN = plain.TINY | {
    "clients": {"public": 30, "train": 60, "vote": 80, "test": 40},
    "project": {"basis": "bspline", "size": 4},
    "epsilon": [4],
    "replicates": 2,
}


def test_coordinates_have_half_the_spread() -> None:
    """In logarithms, around the centre, with mean variance 1; turned with z."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=(4000, 3)) * [3.0, 1.0, 0.5] + [30.0, 0.0, 5.0]
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    moved = half_whitening(z).apply(z)
    spread = np.linalg.eigvalsh(np.cov(moved.T))[::-1]
    np.testing.assert_allclose(
        np.sqrt(spread[0] / spread), [1, 3**0.5, 6**0.5], rtol=0.05
    )
    assert moved.var(axis=0).mean() == pytest.approx(1, rel=1e-6)
    again = half_whitening(z @ turn).apply(z @ turn)
    np.testing.assert_allclose(again, moved @ turn, atol=1e-6)


def test_a_centre_within_its_noise_is_the_public_one() -> None:
    """As is that of people who are all alike, whose coordinates are finite."""
    z = np.random.default_rng(1).normal(size=(20, 3))
    z += 0.01 - z.mean(axis=0)
    assert not half_whitening(z).centre.any()
    assert np.isfinite(half_whitening(np.ones((5, 3))).matrix).all()


def test_evidence_and_mean_are_those_of_the_mixture() -> None:
    """Against the law itself, summed over a fine grid of signals."""
    observed, noise, signal = np.array([0.7]), 0.3, np.array([[0.1, 2.0]])
    log, mean = posterior_mean(observed, noise, signal)
    other, _ = posterior_mean(np.array([0.1]), noise, signal)
    grid = np.linspace(-9, 9, 200_001)
    prior = norm.pdf(grid[:, None], 0, np.sqrt(signal[0])).mean(axis=1)
    seen = [prior * norm.pdf(x, grid, np.sqrt(noise)) for x in (0.7, 0.1)]
    assert mean[0] == pytest.approx(seen[0] @ grid / seen[0].sum(), abs=1e-6)
    ratio = np.log(seen[0].sum() / seen[1].sum())
    assert (log - other)[0] == pytest.approx(ratio, abs=1e-6)


def test_evidence_moves_the_weights_to_where_the_signal_is() -> None:
    """A narrow direction counts where it stands out, else it is left to noise."""
    second = SecondMoment(0.2, np.zeros(2), np.diag([0.7, 0.1]))
    narrow, wide = (
        weigh_priors(NoisyMoments(np.array([[0.0, *slopes]]), 0.01, second))
        for slopes in ((0.05, 0.4), (0.4, 0.05))
    )
    assert abs(narrow[2] * 0.1) > 5 * abs(narrow[1] * 0.7) > 0
    plain_rule = 0.05 / 0.1 / (0.4 / 0.7)
    assert abs(wide[2] / wide[1]) < plain_rule / 4


def test_only_numbers_of_volunteers_are_published(tmp_path: Path) -> None:
    """No label of theirs, nobody else; and the page says what they serve for."""
    tiny = plain.of("whitened", given=GIVEN)
    project = plain.write(tmp_path, tiny=tiny)
    record = plain.run(project)
    views = final_views(project, record)
    views = [view for view in views if view.cell["protocol"] == "whitened"]
    for view in views:
        published = view.columns("publish_numbers", "public_numbers")
        clients, sizes = view.columns("project", "encoded"), GIVEN["clients"]
        mine = split_roles(GIVEN["seed"], 0, len(clients["label"]), sizes)["public"]
        assert set(published) == {"z"}
        assert np.array_equal(published["z"], clients["z"][mine])
        assert view.columns("privatize", "directions")["direction"].shape == (140, 5)
    assert views
    page = render_report(load_page_data(project, record), tmp_path).read_text("utf-8")
    assert "make the coordinates in which the others report" in " ".join(page.split())


@pytest.mark.parametrize("changes", [{"public": 0}, {"public": 1}])
def test_too_few_volunteers_are_refused(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    """Before anything runs."""
    tiny = plain.of("whitened", given=GIVEN | {"clients": GIVEN["clients"] | changes})
    project = plain.write(tmp_path, tiny=tiny)
    with pytest.raises(UserError, match="two at least"):
        PipelinesFile(project).configure_pipeline("tiny")
