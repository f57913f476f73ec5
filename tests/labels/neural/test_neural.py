"""Networks as learners: they train, step and are kept."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import skops.io
from sklearn.base import clone

from curvote.base.errors import UserError
from curvote.labels import Codes, encode
from curvote.systems.labels.learners.factory import make
from curvote.systems.labels.neural.learner import Neural

SIDE = 12
# A shape for each class, in which one quarter of the image is bright.
CORNERS = [(0, 0), (0, 1), (1, 0), (1, 1)]


def drawn(n: int, seed: int = 0, planes: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Return ``n`` flat images of four classes, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.integers(len(CORNERS), size=n)
    images = rng.normal(100, 40, (n, planes, 2, SIDE // 2, 2, SIDE // 2))
    top, left = np.array(CORNERS)[y].T
    images[np.arange(n), :, top, :, left] += 80
    return images.reshape(n, -1), y


@pytest.fixture(scope="module", autouse=True)
def _extra() -> None:
    """Without the extra there is nothing to test here but what it says."""
    pytest.importorskip("jax")
    pytest.importorskip("optax")


def fitted(model: Neural, n: int, epsilon: float = 8.0, planes: int = 1) -> Neural:
    """Return the model after ``n`` images with noised labels."""
    X, y = drawn(n, planes=planes)
    return model.fit(X, coded(y, epsilon), np.random.default_rng(0))


def coded(y: np.ndarray, epsilon: float) -> Codes:
    """Return codes of these labels."""
    return encode(y, np.arange(len(CORNERS)), epsilon, "vector", 1)


@pytest.mark.parametrize(
    "loss", ["likelihood", pytest.param("bce", marks=pytest.mark.faults)]
)
def test_two_epochs_on_500_images_teach_the_cnn(loss: str) -> None:
    """Far above chance, a quarter; the same seed makes the same network."""
    model = Neural(loss=loss, epochs=2, batch=50, rate=3e-3)
    X, y = drawn(400, seed=1)
    votes = fitted(model, 500).votes(X)
    assert votes.shape == (400, 4)
    assert (votes.argmax(axis=1) == y).mean() > 0.7
    assert np.array_equal(votes, fitted(model, 500).votes(X))


@pytest.mark.faults  # four seconds to compile, and no run in the suite takes it
def test_the_resnet_takes_a_step() -> None:
    """On colour images: parameters move, and so do running statistics."""
    model = fitted(Neural("resnet18", epochs=1, batch=8, width=4), 8, planes=3)
    votes = model.votes(drawn(3, planes=3)[0])
    assert votes.sum(axis=1) == pytest.approx(np.ones(3))
    assert len(model.params_["blocks"]) == 8
    widths = [block["first"].shape[-1] for block in model.params_["blocks"]]
    assert widths == [4, 4, 8, 8, 16, 16, 32, 32]
    assert np.abs(model.params_["norm"]["shift"]).min() > 0
    assert np.abs(model.stats_["blocks"][-1]["norm_2"]["mean"]).min() > 0


def test_the_likelihood_is_steep_as_it_should_be() -> None:
    """Its gradient is that of the posterior: softmax minus P(class | code)."""
    import jax
    from scipy.special import softmax

    from curvote.systems.labels.neural.training import (
        channel_loss,
        log_likelihood_targets,
    )

    codes = coded(np.array([0, 1, 2, 3, 3]), 1.0)
    outputs = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    found = jax.grad(channel_loss)(outputs, log_likelihood_targets(codes).values)
    chances = softmax(outputs, axis=1)
    posterior = chances * codes.likelihood()
    posterior /= posterior.sum(axis=1, keepdims=True)
    assert np.asarray(found) == pytest.approx((chances - posterior) / 5, abs=1e-6)


def test_cross_entropy_is_least_at_the_mean_of_the_decoded_codes() -> None:
    """Whatever the encoder: the votes of one output for all are that mean."""
    from curvote.systems.labels.neural.training import bit_targets, bit_votes

    codes = encode(drawn(300)[1], np.arange(4), 1.0, "hadamard", 3)
    targets = bit_targets(codes)
    assert (targets.values.min(), targets.values.max()) == (0, 1)
    mean = targets.values.mean(axis=0, dtype=np.float64)
    votes = bit_votes(np.log(mean / (1 - mean))[None], targets.range)
    assert votes[0] == pytest.approx(codes.decode().mean(axis=0), abs=1e-5)


def test_what_is_kept_are_plain_arrays() -> None:
    """It is stored without a single type of JAX, and votes as before."""
    model = fitted(Neural(epochs=1), 60)
    data = skops.io.dumps(model)
    unknown = skops.io.get_untrusted_types(data=data)
    assert not [name for name in unknown if not name.startswith("curvote.")]
    X, _ = drawn(20, seed=2)
    again = skops.io.loads(data, trusted=unknown)
    assert np.array_equal(again.votes(X), model.votes(X))


def test_fewer_images_than_a_batch_are_one() -> None:
    """And an odd image loses its last row and column to the poolings."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(9, 35)), coded(np.arange(9) % 4, 4.0)
    model = Neural(epochs=1, shape=(7, 5, 1)).fit(X, codes, rng)
    assert model.votes(X).shape == (9, 4)


def test_what_is_set_aside_calibrates() -> None:
    """It is not learnt from: other codes of it make the same network."""
    X, y = drawn(60)
    codes = coded(y, 8.0)
    model = Neural(epochs=1, aside=0.25)
    model.fit(X, codes, np.random.default_rng(0))
    rows = model.without_own().rows
    assert rows is not None
    assert model.without_own().votes is not None
    assert (len(rows), model.without_own().votes.shape) == (15, (15, 4))
    altered = y.copy()
    altered[rows] = (y[rows] + 1) % 4
    values = codes.values.copy()
    values[rows] = coded(altered, 8.0).values[rows]
    again = clone(model).fit(X, replace(codes, values=values), np.random.default_rng(0))
    assert np.array_equal(again.votes(X), model.votes(X))
    nothing = Neural(epochs=1, aside=0).fit(X, codes, np.random.default_rng(0))
    assert nothing.without_own().votes is None


def test_the_registry_makes_it() -> None:
    """With its settings; what it has tuned is nothing."""
    model = make("neural", epochs=1, loss="bce")
    assert isinstance(model, Neural)
    assert (model.loss, model.epochs) == ("bce", 1)
    assert fitted(model, 20).fixed().get_params() == model.get_params()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"architecture": "resnet"}, "Did you mean 'resnet18'"),
        ({"loss": "mse"}, "loss is 'mse'"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch": 0.5}, "batch is 0.5"),
        ({"rate": -1}, "rate is -1"),
        ({"width": 0}, "width is 0"),
        ({"aside": 1}, "aside is 1"),
        ({"shape": (3, 4, 1)}, "a record has 144 pixels"),
    ],
)
def test_bad_settings_are_refused(params: dict[str, Any], said: str) -> None:
    """By name."""
    with pytest.raises(UserError, match=said):
        fitted(Neural(**params), 10)
