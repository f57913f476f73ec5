"""The drifting curves: simulated ones in arrivals, until the slope turns."""

import json

import numpy as np
import pytest

from curvote.data.simulation import simulated


def made(n: int = 600, seed: int = 1, **given: object) -> dict[str, np.ndarray]:
    """Return clients of a drifting source."""
    parameters = simulated.DRIFTING_CURVES.Parameters.model_validate(
        {"points": 9, **given}
    )
    return simulated.DRIFTING_CURVES.clients(parameters, n, np.random.default_rng(seed))


def test_without_a_turn_these_are_the_simulated_clients() -> None:
    """Same generator, same curves and labels as source simulated."""
    curves, labels = simulated.generate(np.random.default_rng(1), 600, 9)
    for source in (made(turn=0.0), made(since=6)):
        np.testing.assert_array_equal(source["label"], labels)
        np.testing.assert_allclose(source["curve"], curves, rtol=0, atol=1e-12)


def test_arrivals_have_equal_shares() -> None:
    """Clients are dealt to the arrivals in turn."""
    counts = np.bincount(made(periods=7)["group"])
    assert len(counts) == 7
    assert np.ptp(counts) <= 1


def test_only_clients_who_come_after_the_turn_differ() -> None:
    """Curves stay; labels change in the arrivals from ``since`` on, and only there."""
    before, after = made(turn=0.0), made(turn=120.0, since=2)
    np.testing.assert_array_equal(before["curve"], after["curve"])
    changed = before["label"] != after["label"]
    share = np.bincount(after["group"], changed) / np.bincount(after["group"])
    assert (share[:2] == 0).all()
    assert (share[2:] > 0.2).all()


@pytest.mark.parametrize("degrees", [-135.0, 90.0, 180.0])
def test_a_turned_slope_keeps_the_spread_of_the_logit(degrees: float) -> None:
    """The labels are as hard to tell: (s_1, s_2) turns by the angle, length kept."""
    zeta = (-1.0) ** np.arange(50) / np.arange(1, 51)
    start, turned = (zeta * simulated.rotated_slope(x) for x in (0.0, degrees))
    np.testing.assert_allclose(np.linalg.norm(turned), np.linalg.norm(start))
    np.testing.assert_array_equal(turned[2:], start[2:])
    length = start[:2] @ start[:2]
    angle = np.deg2rad(degrees)
    assert turned[:2] @ start[:2] == pytest.approx(length * np.cos(angle))
    across = start[0] * turned[1] - start[1] * turned[0]
    assert across == pytest.approx(length * np.sin(angle), abs=1e-9)


def test_labels_follow_the_turned_slope() -> None:
    """The stated logit explains the labels of the turned arrivals (5 std. errors)."""
    points = 2001
    source = made(3000, points=points, periods=1, since=0, turn=90.0)
    grid, beta = np.linspace(0, 1, points), simulated.rotated_slope(90.0)
    j = np.arange(50)[:, None]
    phi = np.where(j > 0, np.sqrt(2), 1) * np.cos(j * np.pi * grid)
    logit = 0.1 + np.trapezoid(source["curve"] * (beta @ phi), grid, axis=1)
    chance = 1 / (1 + np.exp(-logit))
    error = np.sqrt((chance * (1 - chance)).sum())
    assert abs((source["label"] - chance).sum()) < 5 * error
    side = np.where(logit > 0, 1, -1)
    assert abs((side * (source["label"] - chance)).sum()) < 5 * error


def test_the_facts_are_plain_and_name_the_arrivals() -> None:
    """``periods`` tells a protocol that groups are arrivals."""
    facts = simulated.DRIFTING_CURVES.facts(
        simulated.DRIFTING_CURVES.Parameters(periods=4, points=9)
    )
    assert facts["periods"] == 4
    assert len(facts["grid"]) == 9
    assert json.dumps(facts)
