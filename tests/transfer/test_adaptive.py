"""The paper's adaptive rules against plain loops over their definitions."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curvote.base.entropy import SeededEntropy
from curvote.base.errors import UserError
from curvote.systems.transfer.method.model import combine
from curvote.systems.transfer.method.release import release
from curvote.systems.transfer.method.task import Task, form
from curvote.systems.transfer.method.weights import (
    BY_BANDWIDTH,
    FIXED,
    STEADY,
    KernelSide,
    bandwidth_grid,
)

RULES = ("adapt_all", "adapt_homog", *FIXED)


def side(name, n, noise, epsilon, widths):
    """Return a server whose rows nobody reads."""
    return KernelSide(
        server=name,
        n=n,
        rates=np.full(2, 0.5),
        rows=np.ones((1, 4)),
        main=np.ones((1, 4)),
        noise=noise,
        epsilon=epsilon,
        alone=epsilon / math.sqrt(widths),
        widths=tuple(0.5 ** np.arange(widths)),
        d=2,
    )


def some(seed, servers=3, widths=3, queries=20, scale=0.2):
    """Return sides, values (B, q, 1, J) and the target."""
    rng = np.random.default_rng(seed)
    sides = [
        side(str(j), int(rng.integers(20, 500)), noise, rng.uniform(0.1, 2), widths)
        for j, noise in enumerate(rng.uniform(0, 0.01, servers))
    ]
    values = rng.normal(0, scale, (widths, queries, 1, servers))
    return sides, values, int(rng.integers(servers))


def rule_of(name, sides, target):
    """Return the reading of a rule, with weights that hold if it has such."""
    if name in FIXED:
        return BY_BANDWIDTH[STEADY].of(sides, target, FIXED[name](sides, target))
    return BY_BANDWIDTH[name].of(sides, target)


def signs_of(name, sides, values, target):
    """Return what a rule says of each query."""
    contrasts, weights = rule_of(name, sides, target).read(values)
    assert weights.sum(axis=-1) == pytest.approx(1)
    assert (weights >= 0).all()
    return np.sign(contrasts[:, 0])


def simplex(servers, count, seed=0):
    """Return weights (count, servers), faces of the simplex among them."""
    rng = np.random.default_rng(seed)
    w = rng.gamma(0.3, size=(count, servers)) + 1e-12
    return w / w.sum(axis=1, keepdims=True)


def squared(t, v, w):
    """Return (w.t)^2 / sum w^2 v for rows of weights."""
    return (w @ t) ** 2 / (w**2 @ v)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_no_weights_beat_those_of_algorithm_2(seed, servers):
    """The closed form is the maximum over the simplex."""
    sides, values, target = some(seed, servers, widths=1, queries=1)
    rule = BY_BANDWIDTH["adapt_all"].of(sides, target)
    t, v, w = values[0, 0, 0], rule.variance[0], rule.weights(values)[0, 0, 0]
    most = float(squared(t, v, w))
    assert squared(t, v, simplex(servers, 4000, seed)).max() <= most * (1 + 1e-12)


def chosen(sides, values, weights_at, constant):
    """Return the signs that section 5 says, by loops over queries, h and w."""
    widths, d = np.array(sides[0].widths), sides[0].d
    n, noise = np.array([(it.n, it.noise) for it in sides]).T
    star = sum(min(it.n, (it.n * it.epsilon) ** 2) for it in sides)
    limit, signs = constant * math.log(2 * star * len(widths)), []
    for q in range(values.shape[1]):
        best = []
        for h, width in enumerate(widths):
            t, w = values[h, q, 0], weights_at(h)
            ratios = squared(t, width**d / 3 / n + noise, w)
            best.append((ratios.max(), np.sign(w[ratios.argmax()] @ t)))
        clear = [h for h, (ratio, _) in enumerate(best) if ratio > limit]
        at = clear[-1] if clear else int(np.argmax([ratio for ratio, _ in best]))
        signs.append(best[at][1])
    return np.array(signs)


def pooled(sides, target, h):
    """Return the weights of (17) for 2001 values of w_0."""
    width = sides[0].widths[h]
    u = np.array([min(it.n, (it.n * it.alone) ** 2 * width**it.d) for it in sides])
    u[target] = 0
    own = np.linspace(0, 1, 2001)[:, np.newaxis]
    return own * (np.arange(len(u)) == target) + (1 - own) * u / u.sum()


@pytest.mark.parametrize("scale", [0.03, 0.2])
@pytest.mark.parametrize("seed", range(3))
def test_each_rule_is_what_the_paper_says(seed, scale):
    """The choices of h and w agree with a search for them."""
    sides, values, target = some(seed, scale=scale)
    every, size = simplex(3, 20_000), np.array([[float(it.n) for it in sides]])
    alone = np.eye(1, 3, target)
    expected = {
        "adapt_homog": chosen(sides, values, lambda h: pooled(sides, target, h), 4.5),
        "adapt_all": chosen(sides, values, lambda _: every, 2.25 * 3),
        "adapt_samp": chosen(sides, values, lambda _: size, 2.25 * 3),
        "adapt_tar": chosen(sides, values, lambda _: alone, 2.25 * 3),
    }
    for name, signs in expected.items():
        # Draws of the simplex come near its best weights, no more.
        least = 0.95 if name == "adapt_all" else 1
        assert (signs == signs_of(name, sides, values, target)).mean() >= least


def test_two_servers_leave_the_two_algorithms_the_same_weights():
    """With one source the pair is the whole simplex."""
    sides, values, target = some(5, servers=2)
    one, other = (
        rule_of(name, sides, target).read(values)
        for name in ("adapt_homog", "adapt_all")
    )
    assert one[0] == pytest.approx(other[0], rel=1e-9)


def test_without_a_source_the_target_is_left():
    """A single server is weighed by 1 whatever the rule."""
    sides, values, target = some(1, servers=1)
    for name in RULES:
        found = signs_of(name, sides, values, target)
        assert (found == signs_of("adapt_tar", sides, values, target)).all()


def test_a_reading_is_plain_data():
    """What `to_json` says builds the same rule again."""
    sides, values, target = some(2)
    for name in RULES:
        rule = rule_of(name, sides, target)
        again = type(rule)(**rule.to_json())
        assert (again.read(values)[0] == rule.read(values)[0]).all()


def test_grids_of_bandwidths():
    """Natural logarithm, n* from the noise as well, both beginnings."""
    heart = [142, 303, 141, 116], [0.25, 0.25, 0.25, 0.25]
    assert bandwidth_grid(*heart, 7) == [1.0]
    assert bandwidth_grid([500, 500], [1, 1], 2) == [1.0, 0.5, 0.25, 0.125]
    assert bandwidth_grid([500, 500], [1, 1], 2, first=0.5) == [
        0.5,
        0.25,
        0.125,
        0.0625,
    ]
    # The privacy of small tables makes n* small.
    assert bandwidth_grid([10, 10], [0.1, 0.1], 1) == [1.0]


def simulated(seed, n=400):
    """Return records of two classes on a board of four squares, 15 % wrong."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    ill = (X[:, 0] > 0.5) == (X[:, 1] > 0.5)
    return X, np.where(ill ^ (rng.random(n) < 0.15), "yes", "no")


def a_task(epsilon=2.0):
    """Return a task for two servers."""
    return Task(
        [("a", 0, 1), ("b", 0, 1)],
        ("no", "yes"),
        {"near": epsilon, "far": epsilon},
        release="kernel",
        params={"bandwidths": [1.0, 0.5, 0.25], "centre": "half", "grids": 50},
    )


def models(seed=0, epsilon=2.0):
    """Return a model by each rule from two servers' releases."""
    task = a_task(epsilon)
    told = [
        release(task, name, *simulated(seed + i), SeededEntropy(seed))
        for i, name in enumerate(task.servers)
    ]
    return {name: combine(task, told, "near", name) for name in RULES}


def test_releases_classify():
    """Every rule is far above a guess; 0.85 is the best there is."""
    X, y = simulated(9)
    right = {name: (it.predict(X) == y).mean() for name, it in models().items()}
    assert min(right.values()) > 0.72


def test_the_same_point_gets_the_same_answer():
    """Twice, in another order, and from a file."""
    X = np.repeat(simulated(9)[0][:5], 2, axis=0)
    for model in models().values():
        one = model.decision_function(X)
        assert (one[::2] == one[1::2]).all()
        assert model.decision_function(X[::-1])[::-1] == pytest.approx(one, rel=1e-12)
        again = type(model).from_bytes(model.to_bytes())
        assert (again.decision_function(X) == one).all()


def test_the_noise_that_is_reckoned_with_is_the_one_that_was_added():
    """The variance of a query's value over draws is what its side says."""
    task, X, seen = a_task(), simulated(9)[0][:200], []
    kernel = form("kernel")
    for seed in range(60):
        told = release(task, "near", *simulated(0), SeededEntropy(seed))
        told_side = kernel.side(task, told)
        seen.append(kernel.multiply_all(task, X, told_side.rows))
    # Of the narrowest bandwidth: at wide ones few numbers are independent.
    spread = np.stack(seen)[:, -1].var(axis=0, ddof=1).mean()
    assert spread == pytest.approx(told_side.noise, rel=0.15)


def test_weights_that_hold_are_told_and_choose_the_bandwidth():
    """A rule and the same numbers stated are one model; one bandwidth needs no rule."""
    task = a_task()
    told = [
        release(task, name, *simulated(i), SeededEntropy(0))
        for i, name in enumerate(task.servers)
    ]
    X = simulated(9)[0]
    by_size = combine(task, told, "near", "adapt_samp")
    stated = combine(task, told, "near", {"near": 1, "far": 1})
    assert [each.weight for each in by_size.servers] == [0.5, 0.5]
    assert (by_size.decision_function(X) == stated.decision_function(X)).all()
    again = type(stated).from_bytes(stated.to_bytes())
    assert (again.decision_function(X) == stated.decision_function(X)).all()
    assert stated.reading is not None
    assert models_of_one_bandwidth().reading is None
    with pytest.raises(UserError, match="weights"):
        combine(task, told, "near", "")


def models_of_one_bandwidth():
    """Return a model whose weights and bandwidth hold for all queries."""
    task = replace(a_task(), params={"bandwidths": [0.5], "grids": 50})
    told = [release(task, name, *simulated(1)) for name in task.servers]
    return combine(task, told, "near", "adapt_samp")
