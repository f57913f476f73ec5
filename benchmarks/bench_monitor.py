"""Monitor: intervals at every look, alarms, plans, unbiased figures, best encoders.

Run as ``python -m benchmarks.bench_monitor [plan|coverage|drop|figures|encoders]``.
"""

import math
import sys
import time
from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.history import record
from curvote.learning.sequences import share_interval
from curvote.monitor import Question, Watch, answers
from curvote.systems.monitor import encoders
from curvote.systems.monitor.messages import TASK_SETTINGS, make_task
from curvote.systems.monitor.plan import PlannedWatch
from curvote.systems.monitor.settings import Monitor
from curvote.systems.monitor.stages import Findings

EPSILONS = (0.5, 1.0, 2.0)
Sizes = dict[str, float]
Lines = Iterator[str | Sizes]


def coverage(streams: int = 400, looks: int = 200, step: int = 50) -> Lines:
    """Yield how often the interval holds at all looks, and how wide it is."""
    rng, least, widest = np.random.default_rng(34), 1.0, 0.0
    for epsilon, accuracy in product(EPSILONS, (0.6, 0.7, 0.8, 0.9, 0.95, 0.99)):
        codes = _stream(rng, streams * looks * step, accuracy, epsilon)
        ones = codes.reshape(streams, looks, step).sum(axis=2).cumsum(axis=1)
        low, high = _all_looks(ones, step, epsilon)
        held = ((low <= accuracy) & (accuracy <= high)).all(axis=1).mean()
        widths = (high - low).mean(axis=0)
        keep = 1 / (1 + math.exp(-epsilon))
        p = 1 - keep + (2 * keep - 1) * accuracy
        n = step * np.arange(1, looks + 1)
        fixed = 2 * 1.96 * np.sqrt(p * (1 - p) / n) / (2 * keep - 1)
        ratio = widths / fixed
        least, widest = min(least, held), max(widest, ratio.min())
        yield (
            f"epsilon {epsilon:g}, accuracy {accuracy:g}: held {held:.3f},"
            f" width {ratio.min():.2f} times at best (look of {n[ratio.argmin()]}),"
            f" {ratio[-1]:.2f} at the last"
        )
    yield {"held at all looks": least, "width at the best look": widest}


def _all_looks(ones: np.ndarray, step: int, epsilon: float) -> list[np.ndarray]:
    """Return low and high (streams, looks), not cut to [0, 1]; some are `Watch`'s."""
    watch = Watch(epsilon=epsilon)
    n = step * np.arange(1, ones.shape[1] + 1)
    right = np.array([0.0, 1.0])
    start, end = encoders.functional_range(watch.tally.mechanism, right)
    expected, _ = watch.tally.expected(right)
    shares = share_interval(n, ones, watch.error, expected)
    ends = [start + (end - start) * share for share in shares]
    for look in (0, len(n) // 2, len(n) - 1):
        some = Watch(epsilon=epsilon)
        some.add(np.arange(n[look]) < ones[0, look])
        cut = np.clip([e[0, look] for e in ends], 0, 1)
        assert np.allclose(some.interval()[1:], cut, atol=1e-9)
    return ends


def drop(streams: int = 100) -> Lines:
    """Yield when a drop of five points is found, and how often none is one."""
    rng, off, false = np.random.default_rng(35), [0.0], 0
    for epsilon, usual in product(EPSILONS, (0.8, 0.9, 0.95)):
        times, alarms = [], 0
        for _ in range(streams):
            watch = Watch(epsilon=epsilon, reference=usual, margin=0.0)
            watch.add(_stream(rng, 10_000, usual, epsilon))
            alarms += watch.alarm is not None
            watch = Watch(epsilon=epsilon, reference=usual, margin=0.0)
            watch.add(_stream(rng, 2_000, usual + 0.02, epsilon))
            while watch.alarm is None:
                watch.add(_stream(rng, 1_000, usual - 0.05, epsilon))
            times.append(watch.alarm - 2_000)
        promised = watch.detection(usual - 0.05, before=2_000, usual=usual + 0.02)
        mean, se = np.mean(times), np.std(times) / math.sqrt(streams)
        off.append(abs(mean / promised - 1))
        false += alarms
        yield (
            f"epsilon {epsilon:g}, {usual:g} falls by .05: {mean:.0f} ± {se:.0f}"
            f" answers, promised {promised:.0f} ({mean / promised:.2f}); false alarms"
            f" {alarms} of {streams} streams of 10,000"
        )
    share = false / (streams * (len(off) - 1))
    yield {"a drop is found, off its promise": max(off), "false alarms": share}


def _stream(
    rng: np.random.Generator, n: int, accuracy: float, epsilon: float
) -> np.ndarray:
    right = rng.random(n) < accuracy
    seed = int(rng.integers(2**31))
    return answers(right, np.ones(n), epsilon=epsilon, random_state=seed)


def figures(repeats: int = 200, n: int = 4_000) -> Lines:
    """Yield the bias of each question's figures in standard errors, and coverage."""
    rng, largest, least = np.random.default_rng(36), 0.0, 1.0
    groups = ("a", "b", "c")
    questions = (
        Question("class", classes=("x", "y", "z")),
        Question("calibration", bins=5),
        Question("error", bounds=(-2.0, 3.0)),
        Question("error", bounds=(0.0, 3.0), levels=9),
        Question("versus"),
        Question("right", groups=groups),
        Question("class", classes=("x", "y"), groups=groups),
    )
    for unresolved, epsilon in product(questions, (1.0, 3.0)):
        question = unresolved.resolved(epsilon)
        truth, predicted, group = _records(question, rng, n)
        exact = Watch(question, epsilon=50)
        # No noise but that of rounding, whose mean is the number itself.
        exact.add(
            answers(
                truth,
                predicted,
                question=question,
                epsilon=50,
                group=group,
                random_state=1,
            )
        )
        wanted = [
            figure.value if question.name == "error" else min(max(figure.value, -1), 1)
            for figure in exact.figures()
        ]
        wanted = [0.0 if abs(value) < 1e-9 else value for value in wanted]
        if question.name == "error":
            number = predicted - truth
            number = np.abs(number) if question.bounds[0] >= 0 else number
            wanted[0] = float(np.clip(number, *question.bounds).mean())
        rows, held = [], []
        for repeat in range(repeats):
            watch = Watch(question, epsilon=epsilon)
            watch.add(
                answers(
                    truth,
                    predicted,
                    question=question,
                    epsilon=epsilon,
                    group=group,
                    random_state=1000 + repeat,
                )
            )
            found = watch.figures()
            rows.append([figure.value for figure in found])
            held.append(
                [f.low <= w <= f.high for f, w in zip(found, wanted, strict=True)]
            )
        table = np.array(rows)
        rows_known = (~np.isnan(table)).sum(axis=0)
        spread = np.nanstd(table, axis=0) / np.sqrt(rows_known)
        z = (np.nanmean(table, axis=0) - wanted) / np.maximum(spread, 1e-9)
        z[["quantile" in f.name for f in found]] = 0
        linear = [
            i
            for i, f in enumerate(found)
            if not f.group or f.name == "cell" or "quantile" in f.name
        ]
        cover = np.mean(held, axis=0)
        worst = int(np.abs(z[linear]).argmax())
        largest, least = max(largest, abs(z[linear][worst])), min(least, cover.min())
        yield (
            f"{question.name}{' by group' * bool(question.groups)}, epsilon"
            f" {epsilon:g}: {len(found)} figures; largest |z| of shares and means"
            f" {abs(z[linear][worst]):.1f} ({found[linear[worst]].name}), of ratios"
            f" {np.abs(np.delete(z, linear)).max(initial=0):.1f}; least cover"
            f" {cover.min():.3f} ({found[int(cover.argmin())].name})"
        )
    yield {"largest bias in standard errors": largest, "least cover of figures": least}


def _records(
    question: Question, rng: np.random.Generator, n: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    group = rng.integers(0, 3, n) if question.groups else None
    if question.name == "error":
        truth = rng.normal(size=n)
        return truth, truth + rng.normal(0.2, 0.6, n), group
    if question.name == "calibration":
        stated = rng.beta(5, 2, n)
        return rng.random(n) < stated**1.3, stated, group
    k = max(2, len(question.classes))
    truth = rng.choice(k, n, p=np.array([5, 3, 2][:k]) / sum([5, 3, 2][:k]))
    right = rng.random((n, 2)) < (0.85, 0.8)
    if group is not None:
        right[:, 0] = rng.random(n) < np.array([0.9, 0.85, 0.7])[group]
    predicted = np.where(right, truth[:, None], (truth[:, None] + 1) % k)
    names = np.array(question.classes or ("0", "1"))
    predicted = predicted if question.name == "versus" else predicted[:, 0]
    return names[truth], names[predicted], group


def best_encoders() -> Lines:
    """Yield how far the chosen encoder is from the least variance by brute force."""
    most = 0.0
    for words, epsilon in product((2, 3, 4, 6, 9), (0.3, 1.0, 3.0, 6.0)):
        least = math.inf
        for name in encoders.NAMES:
            sizes = range(1, words) if name == "subset_selection" else (None,)
            for size in sizes:
                params = {} if size is None else {"omega": size}
                law = encoders.build(name, epsilon, words, params)
                z = law.decode(law.outputs())
                chance = law.probabilities(np.arange(words))
                spread = chance @ z**2 - (chance @ z) ** 2
                least = min(least, spread.sum(axis=1).mean())
        chosen = encoders.best_for_shares(words, epsilon)
        most = max(most, chosen.variance / least)
        yield (
            f"{words} words, epsilon {epsilon:g}: {chosen.name},"
            f" {chosen.variance / least:.4f} of the least variance"
        )
    yield {"variance over the least": most}


def plan(streams: int = 300) -> Lines:
    """Yield what the plan says of 20 settings, and what new streams do."""
    rng = np.random.default_rng(37)
    settings = [
        (epsilon, usual, margin, people)
        for epsilon, people in ((0.5, 4_000), (1.0, 1_500), (2.0, 500), (4.0, 200))
        for usual, margin in (
            (0.7, 0.0),
            (0.8, 0.01),
            (0.9, 0.0),
            (0.9, 0.02),
            (0.97, 0.01),
        )
    ]
    off = []
    for epsilon, usual, margin, people in settings:
        terms = Monitor(reference=usual, margin=margin, people=people)
        watch = PlannedWatch.of_settings(terms)
        promised = watch.outlook(epsilon)
        needed = watch.people_needed(epsilon, 4)
        found = _windows(rng, streams, (epsilon, usual, margin, people))
        fitting = _windows(rng, streams, (epsilon, usual, margin, needed))
        off += [found / promised.windows - 1, fitting / 4 - 1]
        yield (
            f"epsilon {epsilon:g}, {usual:g} less {margin:g}, {people} people:"
            f" {found:.2f} windows, promised {promised.windows:.2f};"
            f" {fitting:.2f} with {needed} people, promised 4"
        )
    yield {"windows off their plan": float(np.abs(off).max())}


def _windows(
    rng: np.random.Generator,
    streams: int,
    setting: tuple[float, float, float, int],
) -> float:
    """Return the mean number of windows until the alarm of what a run computes."""
    epsilon, usual, margin, people = setting
    task = make_task({**TERMS, "question": "right"}, epsilon)
    mechanism = task.noise()
    gain, base = float(mechanism.p - mechanism.q), float(mechanism.q)
    params = {
        "monitor.error": 0.05,
        "monitor.rounds": 26,
        "monitor.reference": usual,
        "monitor.margin": margin,
    }
    windows = []
    for _ in range(streams):
        detector = Findings(task, params).detector
        look = 0
        while detector.alarm is None:
            accuracy = usual if look < 4 else usual - 0.05
            detector.add_counts(people, rng.binomial(people, base + gain * accuracy))
            look += 1
        if look > 4:
            windows.append(look - 4)
    return float(np.mean(windows))


TERMS = dict.fromkeys(TASK_SETTINGS) | {"bins": 1}
PARTS = {
    "plan": plan,
    "coverage": coverage,
    "drop": drop,
    "figures": figures,
    "encoders": best_encoders,
}


LEAST = {"held at all looks": 0.95, "least cover of figures": 0.95}
MOST = {
    "width at the best look": 1.6,
    "a drop is found, off its promise": 0.2,
    "false alarms": 0.05,
    "largest bias in standard errors": 3.0,
    "variance over the least": 1.05,
    "windows off their plan": 0.1,
}


def main() -> int:
    """Print the lines of the parts that are named, or of all; 1 where one misses."""
    sizes: Sizes = {}
    for name in sys.argv[1:] or PARTS:
        start = time.perf_counter()
        for line in PARTS[name]():
            if isinstance(line, dict):
                sizes |= line
            else:
                print(f"{name}: {line}", flush=True)
        print(f"{name}: {time.perf_counter() - start:.0f} s")
    least = {key: limit for key, limit in LEAST.items() if key in sizes}
    bounds = {key: limit for key, limit in MOST.items() if key in sizes}
    return record("monitor", {}, sizes=sizes, bounds=bounds, least=least)


if __name__ == "__main__":
    sys.exit(main())
