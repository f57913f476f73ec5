"""The simulated servers follow the formulas of their groups."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import ValidationError

from curvote.data.simulation import simulated

CHOSEN = simulated.SERVER_CURVES.Parameters(points=501)
GRID = np.linspace(0, 1, 501)
PHI = np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(50), GRID))
PHI[0] = 1


def test_servers_belong_to_three_groups() -> None:
    """Ten, five and ten of them, unless other sizes are given; 0 is a size."""
    groups = [
        simulated.group_of(CHOSEN, int(k))
        for k in simulated.SERVER_CURVES.servers(CHOSEN)
    ]
    assert groups == [1] * 10 + [2] * 5 + [3] * 10
    other = simulated.SERVER_CURVES.Parameters(servers=(1, 0, 2))
    assert [simulated.group_of(other, k) for k in range(3)] == [1, 3, 3]
    assert simulated.SERVER_CURVES.facts(other)["groups"] == [1, 3, 3]
    assert json.dumps(simulated.SERVER_CURVES.facts(CHOSEN))


@pytest.mark.parametrize("servers", [[0, 0, 0], [1, 2], [1, -1, 1], [1.5, 1, 1]])
def test_impossible_groups_are_refused(servers: list[float]) -> None:
    """Three sizes, whole and not negative, and at least one server."""
    with pytest.raises(ValidationError):
        simulated.SERVER_CURVES.Parameters.model_validate({"servers": servers})


def test_the_process_has_the_stated_covariance() -> None:
    """The closed form agrees with a quadrature of phi_m K phi_n on a fine grid."""
    fine = np.linspace(0, 1, 2001)
    weights = np.full(2001, 1 / 2000)
    weights[[0, -1]] /= 2
    phi = np.sqrt(2) * np.cos(np.pi * np.outer(np.arange(50), fine)) * weights
    phi[0] = weights
    kernel = np.exp(-15 * np.abs(fine[:, None] - fine))
    away = simulated.process_covariance() - phi @ kernel @ phi.T
    assert np.abs(away).max() < 2e-6


def test_slopes_of_a_group_have_its_law() -> None:
    """Coefficients of groups 1 and 3 lie in their ranges, group 2's covary as stated.

    The latter by the mean of b' C^-1 b, which is 50 with variance 100/n.
    """
    rng, n = np.random.default_rng(3), 400
    decay = np.arange(1, 51) ** -2.0 * (-1.0) ** np.arange(50)
    low, high = (
        np.array([simulated.draw_slope(rng, g) for _ in range(n)]) / decay
        for g in (1, 3)
    )
    for gamma, centre in ((low, -5), (high, 5)):
        assert np.abs(gamma - centre).max() <= 3 * (1 + 1e-12)
        assert abs(gamma.mean() - centre) < 5 * np.sqrt(3 / gamma.size)
    drawn = np.array([simulated.draw_slope(rng, 2) for _ in range(n)])
    inverse = np.linalg.inv(simulated.process_covariance())
    mean = np.einsum("ij,jk,ik->i", drawn, inverse, drawn).mean()
    assert abs(mean - 50) < 5 * np.sqrt(100 / n)


@pytest.mark.parametrize("server", [0, 3, 12, 24])
def test_labels_follow_the_slope_of_their_server(server: int) -> None:
    """The logit is alpha0 + integral X beta: no surprise is left (5 errors)."""
    n = 20_000
    slope = simulated.draw_slope(
        np.random.default_rng(server), simulated.group_of(CHOSEN, server)
    )
    clients = simulated.SERVER_CURVES.clients(
        CHOSEN, n, np.random.default_rng(server), server
    )
    logit = 0.1 + np.trapezoid(clients["curve"] * (slope @ PHI), GRID, axis=1)
    surprise = clients["label"] - 1 / (1 + np.exp(-logit))
    for direction in (np.ones(n), logit - logit.mean()):
        away = surprise * direction
        assert abs(away.mean()) < 5 * away.std() / np.sqrt(n)
    assert np.abs(logit - 0.1).mean() > 0.1


def test_every_instance_draws_a_slope_of_its_own() -> None:
    """One generator, one server; another generator, another slope."""
    first, again, other = (
        simulated.SERVER_CURVES.clients(CHOSEN, 30, np.random.default_rng(seed), 1)
        for seed in (5, 5, 6)
    )
    for name, column in first.items():
        np.testing.assert_array_equal(column, again[name])
    assert not np.array_equal(first["curve"], other["curve"])
