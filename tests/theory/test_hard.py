"""Where runs of `direct` end if records are not normal, beside real reports."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.bench_advise import measured
from benchmarks.laws import Law
from curvote.advise.direct import LAWS, error_range
from curvote.theory import Signal, expect_direct
from tests.noise import SEED


@pytest.mark.parametrize(
    ("records", "degree"),
    [("normal", 0), ("shifted", 0.8), ("lognormal", 0.6), ("student", 4)],
)
@pytest.mark.parametrize("positive", [0.5, 0.8])
def test_real_reports_end_between_the_stated_ends(
    records: str, degree: float, positive: float
) -> None:
    """At least four of five runs, of nine of ten that are promised."""
    law = Law(records, degree, "dense", 3, positive, 1500, 4, (1.0,), (SEED,))
    errors, told, (low, high) = measured(law, 20)
    assert low <= told <= high
    assert np.mean((errors > low - 0.01) & (errors < high + 0.01)) >= 0.8


def test_ends_are_a_function_of_public_numbers_and_close_up() -> None:
    """Twice the same; more clients bring them together; no rule beats the best."""
    signal, width = Signal(0.2, 0.6), []
    for n in (500, 5000, 100_000):
        told = expect_direct(n, 3, 1.0, signal)
        low, high = error_range(n, 3, 1.0, signal, told)
        assert (low, high) == error_range(n, 3, 1.0, signal, told)
        assert signal.best <= low <= told.error <= high < 1
        width.append(high - low)
    assert width == sorted(width, reverse=True)


@pytest.mark.parametrize("law", list(LAWS))
def test_laws_are_as_wide_as_public_constants_say(law: str) -> None:
    """Of variance near 1, so that only their shape is hard."""
    rng = np.random.default_rng(SEED)
    variances = [LAWS[law](rng, 5).var(axis=0) for _ in range(20)]
    assert np.mean(variances) == pytest.approx(1, abs=0.25)
