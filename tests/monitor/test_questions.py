"""Questions, encoders and figures: unbiased, best by brute force, never alone."""

import math
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.monitor import Question, Watch, answers
from curvote.systems.monitor import encoders
from curvote.systems.monitor.questions import Tally

N, REPEATS = 2_000, 40
GROUPS = ("young", "old")
QUESTIONS = [
    Question("right"),
    Question("right", groups=GROUPS),
    Question("class", classes=("x", "y", "z")),
    Question("calibration", bins=3),
    Question("error", bounds=(-2.0, 2.0)),
    Question("error", bounds=(0.0, 2.0), levels=9),
    Question("versus"),
]


def records(question: Question) -> dict[str, Any]:
    """Return truth, predictions and groups of N records."""
    rng = np.random.default_rng(3)
    group = rng.integers(0, 2, N) if question.groups else None
    if question.name == "error":
        truth = rng.normal(size=N)
        return {"truth": truth, "predicted": truth + rng.normal(0.1, 0.4, N)}
    if question.name == "calibration":
        sure = rng.beta(4, 2, N)
        return {"truth": rng.random(N) < sure, "predicted": sure}
    names = np.array(question.classes or ("a", "b"))
    truth = rng.integers(0, len(names), N)
    right = rng.random((N, 2)) < (0.85, 0.75)
    predicted = np.where(right, truth[:, None], (truth[:, None] + 1) % len(names))
    chosen = names[predicted] if question.name == "versus" else names[predicted[:, 0]]
    return {"truth": names[truth], "predicted": chosen, "group": group}


def figures_of(question: Question, epsilon: float, seed: int) -> list[Any]:
    """Return the figures of noised answers."""
    watch = Watch(question, epsilon=epsilon)
    given = records(question)
    watch.add(answers(**given, question=question, epsilon=epsilon, random_state=seed))
    return watch.figures()


@pytest.mark.parametrize(
    "question", QUESTIONS, ids=lambda q: f"{q.name}{len(q.groups)}"
)
def test_figures_are_right_in_the_mean(question: Question) -> None:
    """Within three standard errors of what no noise says; intervals hold."""
    resolved = question.resolved(2.0)
    clean = figures_of(resolved, 50.0, 1)
    rows = [figures_of(resolved, 2.0, 100 + seed) for seed in range(REPEATS)]
    for place, wanted in enumerate(clean):
        if "quantile" in wanted.name or math.isnan(wanted.value):
            continue
        values = np.array([row[place].value for row in rows])
        if np.isnan(values).any():  # of hardly anybody, of whom nothing is said
            assert wanted.name == "right"
            continue
        error = values.std(ddof=1) / math.sqrt(REPEATS)
        # Levels are rounded to at random, in the clean answers, too.
        slack = 0.02 if question.name == "error" else 1e-9
        assert abs(values.mean() - wanted.value) < 3.5 * error + slack, wanted
        near = [(row[place].low - 1e-9, row[place].high + 1e-9) for row in rows]
        held = [low <= wanted.value <= high for low, high in near]
        assert np.mean(held) >= 0.9
    main = clean[0]
    assert main.low <= main.value <= main.high


@pytest.mark.parametrize("words", [2, 4, 6, 9])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_encoder_is_the_best_of_all(words: int, epsilon: float) -> None:
    """By all outputs of all encoders, whatever the parameter."""
    least = math.inf
    for name in encoders.NAMES:
        sizes = range(1, words) if name == "subset_selection" else (None,)
        for size in sizes:
            law = encoders.build(
                name, epsilon, words, {} if size is None else {"omega": size}
            )
            z, chances = law.decode(law.outputs()), law.probabilities(range(words))
            spread = (chances @ z**2 - (chances @ z) ** 2).sum(axis=1).mean()
            least = min(least, float(spread))
    chosen = encoders.best_for_shares(words, epsilon)
    assert chosen.variance == pytest.approx(least, rel=1e-9)
    assert chosen.name in chosen.reason


@pytest.mark.parametrize("name", encoders.NAMES)
def test_variance_and_range_of_a_figure_are_exact(name: str) -> None:
    """Against all outputs, for any numbers that words stand for."""
    f = np.random.default_rng(0).normal(size=6)
    law = encoders.build(name, 1.3, 6, {})
    z, chances = law.decode(law.outputs()) @ f, law.probabilities(range(6))
    spread = chances @ z**2 - (chances @ z) ** 2
    assert np.allclose(encoders.functional_variance(law, f), spread)
    assert np.allclose(encoders.functional_range(law, f), (z.min(), z.max()))


def test_one_bit_leaves_where_noise_is_large() -> None:
    """A mean is asked for by two levels then, by more where epsilon allows them."""
    sizes = [encoders.best_for_mean(e).words for e in (0.5, 1.0, 3.0, 8.0)]
    assert sizes == sorted(sizes)
    assert sizes[0] == 2
    assert sizes[-1] > 4


def test_counts_say_what_codes_say() -> None:
    """However they are cut into parts; memory does not grow with answers."""
    question = Question("class", classes=("x", "y"))
    law = question.encoder(1.0).mechanism(1.0)
    codes = law.outputs()
    counts = np.arange(1, len(codes) + 1) * 1_000
    one, many = Tally(law), Tally(law)
    one.add(codes, counts)
    many.add(np.repeat(codes, counts, axis=0))
    assert one.n == many.n == counts.sum()
    assert np.allclose(one.total, many.total)
    assert np.allclose(one.squares, many.squares)


def test_liars_move_a_figure_no_further_than_is_said() -> None:
    """One of a hundred sends what hurts most."""
    codes = answers(np.ones(1_000), np.ones(1_000), epsilon=1.0, random_state=2)
    watch, lied = Watch(), Watch()
    watch.add(codes)
    (figure,) = watch.figures()
    codes[np.flatnonzero(codes)[:10]] = 0
    lied.add(codes)
    moved = figure.value - lied.figures()[0].value
    assert 0.9 * figure.liars < moved <= figure.liars * 1.5
    everybody = 0.01 * (1 + math.e) / (math.e - 1)
    assert moved == pytest.approx(everybody, rel=1e-6)


def test_a_watch_of_the_readme() -> None:
    """Nothing is known first; codes that nobody sends and odd settings are refused."""
    watch = Watch("right", epsilon=1.0, error=0.05, reference=0.9, margin=0.03)
    assert math.isnan(watch.interval()[0])
    assert watch.interval()[1:] == (0.0, 1.0)
    assert watch.alarm is None
    rng = np.random.default_rng(1)
    while watch.alarm is None:
        wrong = rng.random(1_000) < 0.4
        watch.add(
            answers(wrong, np.zeros(1_000), epsilon=1.0, random_state=watch.tally.n)
        )
    assert 100 < watch.alarm < 5_000
    with pytest.raises(UserError, match="none that this question can give"):
        watch.add([2])
    with pytest.raises(UserError, match="needs the reference"):
        Watch(margin=0.1)
    with pytest.raises(UserError, match="two or more classes"):
        Watch("class")
    with pytest.raises(UserError, match="bounds"):
        Watch("error")
    with pytest.raises(UserError, match="right"):
        Watch("rigth")
    grouped = Question("right", groups=GROUPS)
    with pytest.raises(UserError, match="each record's group"):  # else all in the first
        answers([1, 0], [1, 0], question=grouped)
    with pytest.raises(UserError, match="no group, as it has none"):
        answers([1, 0], [1, 0], group=[0, 1])
    with pytest.raises(UserError, match="predicted two for versus"):
        answers([1, 0], [1, 0], question="versus")
