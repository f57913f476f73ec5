"""Public bins on the line of a noised number."""

import numpy as np
import pytest

from curvote.mechanisms import make
from curvote.systems.utility.method.scan import (
    MOST,
    bin_edges,
    bin_masses,
    count_bins,
)

VALUES = np.linspace(-1, 1, 9)


def laws(name, epsilon, **params):
    """Return the laws of nine inputs, one for each term."""
    mechanism = make(name, epsilon=epsilon, **params)
    start, stop = mechanism.domain
    columns = (start + (stop - start) * (VALUES + 1) / 2)[:, None]
    return [term[0] for term in mechanism.law(mechanism.to_inputs(columns)).terms]


@pytest.mark.parametrize("name", ["laplace", "piecewise", "pm_01", "hybrid", "duchi"])
@pytest.mark.parametrize("epsilon", [0.3, 2.0, 9.0])
def test_every_output_has_its_bin(name, epsilon):
    """Masses add up to 1 for every input."""
    found = laws(name, epsilon)
    ends = bin_edges(found)
    assert np.all(np.diff(ends) > 0)
    for law in found:
        np.testing.assert_allclose(bin_masses(law, ends).sum(axis=1), 1, atol=1e-9)


def test_atoms_alone_are_one_bin_each():
    """And no bin is empty."""
    found = laws("k_rr", 2.0, n_classes=5)
    assert count_bins(found) == 1
    ends = bin_edges(found)
    (law,) = found
    assert bin_masses(law, ends).shape == law.masses.shape
    np.testing.assert_allclose(bin_masses(law, ends), law.masses, atol=1e-12)


def test_atoms_beside_a_rest_are_apart_from_it():
    """An atom's bin holds nothing else."""
    found = laws("hybrid", 3.0)
    (ends, law) = bin_edges(found), found[0]
    each = bin_masses(law, ends)
    for point in np.unique(law.points):
        place = int(np.searchsorted(ends, point))
        alone = law.cdf([point]) - law.below([point])
        np.testing.assert_allclose(each[:, place], alone[:, 0], atol=1e-12)


def test_narrow_noise_has_more_bins_and_none_has_more_than_most():
    """Up to 512."""
    numbers = [count_bins(laws("pm_01", epsilon)) for epsilon in (1.0, 3.0, 6.0, 20.0)]
    assert numbers == sorted(numbers)
    assert numbers[0] < numbers[-1] == MOST
