"""Decoded codes of many classes: nothing as large as the result is made beside it."""

import tracemalloc

import numpy as np
import pytest

from curvote.base.entropy import SeededEntropy
from curvote.mechanisms import exact, make
from curvote.systems.labels.codes.encoders import ENCODERS
from tests.noise import SEED

N, CLASSES = 40_000, 100
WHOLE = 8 * N * CLASSES


def encoded(name: str, n: int = N):
    """Return a mechanism for a hundred classes and its outputs for n labels."""
    labels = np.arange(n) % CLASSES
    given = {"prior": 1 + np.arange(CLASSES)} if name == "rr_with_prior" else {}
    law = make(name, epsilon=1, n_classes=CLASSES, **given)
    return law, law.randomize(labels, SeededEntropy(SEED))


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("read", ["decode", "likelihood"])
def test_memory(name, read, monkeypatch):
    """The peak is the result, a bit or a byte for each number, and one block."""
    monkeypatch.setattr(exact, "_BITS_AT_ONCE", 1 << 16)
    law, outputs = encoded(name)
    tracemalloc.start()
    found = getattr(law, read)(outputs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.nbytes, found.dtype) == (WHOLE, np.dtype(np.float64))
    assert peak < 1.2 * WHOLE + 8 * 8 * (1 << 16)


@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("read", ["decode", "likelihood"])
def test_blocks_make_no_difference(name, read, monkeypatch):
    """Rows are the same however few are worked on at once."""
    law, outputs = encoded(name, 500)
    whole = getattr(law, read)(outputs)
    monkeypatch.setattr(exact, "_BITS_AT_ONCE", 700)
    assert (getattr(law, read)(outputs) == whole).all()
    assert getattr(law, read)(outputs[:0]).shape == (0, CLASSES)


@pytest.mark.parametrize("name", ENCODERS)
def test_likelihood_is_that_of_the_law(name):
    """Its logarithm differs between labels as the declared loss does; at most 1."""
    law, outputs = encoded(name, 300)
    likely, n = law.likelihood(outputs), len(outputs)
    assert (likely.max(axis=1) == 1).all()
    for one, other in ((0, 1), (3, 99), (50, 2)):
        loss = law.log_ratio(np.full(n, one), np.full(n, other), outputs)
        found = np.log(likely[:, one]) - np.log(likely[:, other])
        assert found == pytest.approx(loss, abs=1e-9)
