"""Examines subjects: every check on each, one row with its verdict."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import combinations
from typing import NamedTuple

import numpy as np

from curvote.audit import (
    answers,
    batches,
    exact,
    independence,
    interior,
    ladder,
    lags,
    law,
    metamorphic,
    release_checks,
    reruns,
    statistical,
    support,
    work,
)
from curvote.audit.ladder import Ladder
from curvote.audit.leaving import Release
from curvote.audit.reruns import Memo
from curvote.audit.row import BROKEN, Finding, Row, ratio_text
from curvote.audit.statistical import Pair
from curvote.audit.subject import Loss, Subject
from curvote.entropy import SeededEntropy

SEED = 20240801
SAMPLES = 300_000
CONFIDENCE = 0.999999
# Outputs of more numbers are drawn for fewer clients.
NARROW = 6
# Error rate of each check of inputs from everywhere.
ALPHA = 1e-8
MOST_PAIRS = 6


Audited = Subject | Memo | Release | Ladder


class _Found(NamedTuple):
    findings: list[Finding]
    bound: float | None = None
    loss: Loss | None = None


def run(*subjects: Audited, samples: int = SAMPLES, seed: int = SEED) -> list[Row]:
    """Return a row for each subject, in order.

    ``samples`` draws are made for each input that is tried; 0 leaves out all that needs
    draws. A sound subject is called violated with probability 1e-6 at most. One seed
    gives one bound; only the check of independence asks the operating system.
    """
    return [examine(subject, samples, seed) for subject in subjects]


def spread(
    jobs: Sequence[tuple[Audited, int]], seed: int, workers: int
) -> Iterator[Row]:
    """Yield the row of each (subject, samples), in order, from several processes."""
    from joblib import Parallel, delayed

    todo = (delayed(examine)(subject, samples, seed) for subject, samples in jobs)
    yield from Parallel(n_jobs=workers, return_as="generator")(todo)


def examine(subject: Audited, samples: int, seed: int) -> Row:
    """Return the row of one subject."""
    if isinstance(subject, Ladder):
        found = _Found(ladder.every(subject, samples, seed))
    elif isinstance(subject, Memo):
        release = subject.release(seed)
        found = _Found([reruns.check(release, subject.truth, subject.budget)])
    elif isinstance(subject, Release):
        with closing(subject):
            found = _Found(release_checks.every(subject, samples, seed))
    else:
        found = _examined(subject, samples, seed)
    return _row(subject, found, seed)


def _examined(subject: Subject, samples: int, seed: int) -> _Found:
    loss = subject.loss()
    findings = [
        exact.check(subject, loss),
        *subject.own_checks(),
        metamorphic.check(subject, seed),
        answers.check(subject),
    ]
    if not samples:
        return _Found(findings, loss=loss)
    pairs = drawn(subject, samples, seed)
    # Half of the error rate for the bound, a quarter for each of the other two.
    share = (1 - CONFIDENCE) / 4
    bound, event = statistical.lower_bound(subject, pairs, 2 * share)
    first = pairs[0]
    findings += [
        statistical.check(subject, bound, event),
        support.check(subject, pairs),
        law.check(subject, pairs, share),
        independence.check(subject, first.x, first.outputs, share),
        work.check(subject, seed),
        *_everywhere(subject, samples, seed),
    ]
    return _Found(findings, bound, loss)


def _everywhere(subject: Subject, samples: int, seed: int) -> list[Finding]:
    """Return what is found for inputs from everywhere, few clients and many."""
    streams = _streams(subject, seed)
    rng, entropy = np.random.default_rng(streams), SeededEntropy(streams.spawn(1)[0])
    width = subject.view(subject.send(subject.many(1, rng), entropy)).shape[1]
    n = min(samples, subject.crowd[width > NARROW])
    clients = subject.many(n, rng)
    found = subject.residuals(clients, subject.send(clients, entropy), rng)
    few = []
    if subject.batched:
        few = [batches.check(subject, samples, entropy, rng, ALPHA)]
    if found is None:
        return few
    places = subject.places(clients)
    return [
        *few,
        interior.check(places, found, ALPHA),
        lags.check(found[: lags.MOST_ROWS]),
    ]


def _streams(subject: Subject, seed: int) -> np.random.SeedSequence:
    label = f"{subject.name} {subject.budget.epsilon!r}".encode()
    return np.random.SeedSequence([seed, zlib.crc32(label)])


def drawn(subject: Subject, samples: int, seed: int) -> list[Pair]:
    """Return pairs of inputs, the worst first, with ``samples`` draws for each input.

    The words come from a stream named by the seed and the subject's name and epsilon.
    """
    streams = _streams(subject, seed)
    inputs = subject.inputs(np.random.default_rng(streams.spawn(1)[0]))
    entropy = SeededEntropy(streams.spawn(1)[0])
    width = subject.view(subject.draw(inputs[0], 1, SeededEntropy(seed))).shape[1]
    n = min(samples, subject.most_numbers // width)
    outputs = [subject.draw(x, n, entropy) for x in inputs]
    together = list(zip(inputs, outputs, strict=True))
    pairs = list(combinations(together, 2))[:MOST_PAIRS]
    return [Pair.of(subject, *pair) for pair in pairs]


def _row(subject: Audited, found: _Found, seed: int) -> Row:
    caught = tuple(f.check for f in found.findings if f.why is not None)
    verdicts = ("caught", "missed")
    if not subject.name.startswith(BROKEN):
        verdicts = ("violated", "pass")
    loss = found.loss
    return Row(
        mechanism=subject.name,
        params=subject.said if isinstance(subject, Subject) else subject.params,
        claimed=subject.budget.epsilon,
        delta=subject.budget.delta,
        exact=loss.log if loss else None,
        exact_ratio=ratio_text(loss.ratio) if loss else None,
        lower_bound=found.bound,
        confidence=None if found.bound is None else CONFIDENCE,
        verdict=verdicts[0] if caught else verdicts[1],
        checks={f.check: str(f) for f in found.findings},
        caught_by=caught,
        seed=seed,
    )
