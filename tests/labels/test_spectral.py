"""The anchor graph: what a dense computation finds, and what must be refused."""

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.systems.labels.learners.graph import Spectral


def records(n=200, d=3, seed=0):
    """Return records in a cloud."""
    return np.random.default_rng(seed).normal(size=(n, d))


def dense_ties(X, anchors, neighbours):
    """Return W by its definition."""
    W = np.zeros((len(X), len(anchors)))
    for row, x in enumerate(X):
        distance = np.linalg.norm(anchors - x, axis=1)
        near = np.argsort(distance)[:neighbours]
        weight = np.exp(-2 * (distance[near] / distance[near[-1]]) ** 2)
        W[row, near] = weight / weight.sum()
    return W


@pytest.fixture(scope="module")
def fitted():
    """Return a small fitted graph and its records."""
    X = records()
    return Spectral(m=8, anchors=30, neighbours=4, random_state=1).fit(X), X


def test_ties_are_those_of_the_definition(fitted):
    """Rows of W, of records of the graph and of new ones."""
    graph, X = fitted
    for rows in (X, records(50, seed=7)):
        dense = dense_ties(rows, graph.anchors_, 4)
        assert graph.ties(rows).toarray() == pytest.approx(dense, abs=1e-12)


def test_columns_are_the_eigenvectors_of_the_graph(fitted):
    """The graph of records W D^-1 W' has them, and its largest eigenvalues."""
    graph, X = fitted
    W = dense_ties(X, graph.anchors_, 4)
    D = W.sum(axis=0)
    values = np.linalg.eigvalsh((W / D) @ W.T)[::-1][:8]
    Z = graph.transform(X)
    assert graph.eigenvalues_ == pytest.approx(values, abs=1e-10)
    assert pytest.approx(Z * values, abs=1e-9) == (W / D) @ (W.T @ Z)
    assert Z.T @ Z / len(X) == pytest.approx(np.eye(8), abs=1e-9)
    assert Z[:, 0] == pytest.approx(Z[0, 0])


def test_new_records_are_the_mean_of_their_anchors(fitted):
    """The map of a record is linear in its ties, whatever else is transformed."""
    graph, _ = fitted
    new = records(20, seed=3)
    whole = graph.transform(new)
    assert whole == pytest.approx(
        dense_ties(new, graph.anchors_, 4) @ graph.components_
    )
    assert graph.transform(new[:1]) == pytest.approx(whole[:1])


def test_fewer_columns_are_the_first(fitted):
    """M only says where to stop."""
    graph, X = fitted
    fewer = Spectral(m=3, anchors=30, neighbours=4, random_state=1).fit(X)
    assert fewer.transform(X) == pytest.approx(graph.transform(X)[:, :3], abs=1e-8)


def test_equal_records_make_fewer_anchors():
    """Two distinct records have two anchors and at most two columns."""
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)
    graph = Spectral(m=5, anchors=10, neighbours=3, random_state=0).fit(X)
    assert graph.anchors_.shape == (2, 2)
    assert graph.transform(X).shape[1] <= 2
    assert np.isfinite(graph.transform(X)).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"anchors": 201}, "anchors is 201, but X has n_samples = 200"),
        ({"neighbours": 31}, "neighbours is 31, anchors 30"),
        ({"m": 31}, "m is 31, anchors 30"),
        ({"m": 0}, "m is 0"),
    ],
)
def test_more_than_there_is_is_refused(given, said):
    """More anchors than records, more neighbours or columns than anchors."""
    with pytest.raises(UserError, match=said):
        Spectral(**{"m": 8, "anchors": 30, "neighbours": 4, **given}).fit(records())
