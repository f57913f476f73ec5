"""Verdicts on subjects, by one process or several."""

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
from curvote.audit.ladder import EpsilonSweep
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


Audited = Subject | Memo | Release | EpsilonSweep


class _Evidence(NamedTuple):
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


def run_parallel(
    jobs: Sequence[tuple[Audited, int]], seed: int, workers: int
) -> Iterator[Row]:
    """Yield the rows of (subject, samples) in order, by several processes."""
    from joblib import Parallel, delayed

    todo = (delayed(examine)(subject, samples, seed) for subject, samples in jobs)
    yield from Parallel(n_jobs=workers, return_as="generator")(todo)


def examine(subject: Audited, samples: int, seed: int) -> Row:
    """Return the row of one subject."""
    if isinstance(subject, EpsilonSweep):
        evidence = _Evidence(ladder.check_sweep(subject, samples, seed))
    elif isinstance(subject, Memo):
        release = subject.release(seed)
        evidence = _Evidence(
            [reruns.check_reruns(release, subject.truth, subject.budget)]
        )
    elif isinstance(subject, Release):
        with closing(subject):
            evidence = _Evidence(release_checks.check_release(subject, samples, seed))
    else:
        evidence = _examine_subject(subject, samples, seed)
    return _verdict_row(subject, evidence, seed)


def _examine_subject(subject: Subject, samples: int, seed: int) -> _Evidence:
    loss = subject.loss()
    findings = [
        exact.check_declared_loss(subject, loss),
        *subject.own_checks(),
        metamorphic.check_odd_inputs(subject, seed),
        answers.check_answers(subject),
    ]
    if not samples:
        return _Evidence(findings, loss=loss)
    pairs = draw_pairs(subject, samples, seed)
    # Half of the error rate for the bound, a quarter for each of the other two.
    share = (1 - CONFIDENCE) / 4
    bound, event = statistical.lower_bound(subject, pairs, 2 * share)
    first = pairs[0]
    findings += [
        statistical.check_lower_bound(subject, bound, event),
        support.check_support(subject, pairs),
        law.check_law(subject, pairs, share),
        independence.check_independence(subject, first.x, first.outputs, share),
        work.check_word_counts(subject, seed),
        *_check_everywhere(subject, samples, seed),
    ]
    return _Evidence(findings, bound, loss)


def _check_everywhere(subject: Subject, samples: int, seed: int) -> list[Finding]:
    """Return the findings for inputs from everywhere."""
    streams = _seed_streams(subject, seed)
    rng, entropy = np.random.default_rng(streams), SeededEntropy(streams.spawn(1)[0])
    width = subject.view(subject.send(subject.many(1, rng), entropy)).shape[1]
    n = min(samples, subject.crowd[width > NARROW])
    clients = subject.many(n, rng)
    residuals = subject.residuals(clients, subject.send(clients, entropy), rng)
    few = []
    if subject.batched:
        few = [batches.check_batches(subject, samples, entropy, rng, ALPHA)]
    if residuals is None:
        return few
    places = subject.places(clients)
    return [
        *few,
        interior.check_interior(places, residuals, ALPHA),
        lags.check_lags(residuals[: lags.MOST_ROWS]),
    ]


def _seed_streams(subject: Subject, seed: int) -> np.random.SeedSequence:
    label = f"{subject.name} {subject.budget.epsilon!r}".encode()
    return np.random.SeedSequence([seed, zlib.crc32(label)])


def draw_pairs(subject: Subject, samples: int, seed: int) -> list[Pair]:
    """Return pairs of inputs with ``samples`` draws each, the worst first.

    The words come from a stream named by the seed and the subject's name and epsilon.
    """
    streams = _seed_streams(subject, seed)
    inputs = subject.inputs(np.random.default_rng(streams.spawn(1)[0]))
    entropy = SeededEntropy(streams.spawn(1)[0])
    width = subject.view(subject.draw(inputs[0], 1, SeededEntropy(seed))).shape[1]
    n = min(samples, subject.most_numbers // width)
    outputs = [subject.draw(x, n, entropy) for x in inputs]
    together = list(zip(inputs, outputs, strict=True))
    pairs = list(combinations(together, 2))[:MOST_PAIRS]
    return [Pair.of(subject, *pair) for pair in pairs]


def _verdict_row(subject: Audited, evidence: _Evidence, seed: int) -> Row:
    caught = tuple(f.check for f in evidence.findings if f.why is not None)
    verdicts = ("caught", "missed")
    if not subject.name.startswith(BROKEN):
        verdicts = ("violated", "pass")
    loss = evidence.loss
    return Row(
        mechanism=subject.name,
        params=subject.said if isinstance(subject, Subject) else subject.params,
        claimed=subject.budget.epsilon,
        delta=subject.budget.delta,
        exact=loss.log if loss else None,
        exact_ratio=ratio_text(loss.ratio) if loss else None,
        lower_bound=evidence.bound,
        confidence=None if evidence.bound is None else CONFIDENCE,
        verdict=verdicts[0] if caught else verdicts[1],
        checks={f.check: str(f) for f in evidence.findings},
        caught_by=caught,
        seed=seed,
    )
