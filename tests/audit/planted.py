"""The bugs of planted.toml, as changes of what the commands are made of.

Each is planted in the command's process, and in the audit's own: whoever edits a module
changes both.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from curvote.base.entropy import Entropy, SeededEntropy, SystemEntropy
from curvote.cli.client import answer as records
from curvote.cli.client import table
from curvote.client import report as votes
from curvote.mechanisms.gaussian import GaussianNoise
from curvote.mechanisms.randomized_response import BinaryRR
from curvote.systems.labels.messages import CODE
from curvote.systems.transfer.method import release
from curvote.systems.transfer.method.task import Task


def hospital_again(seed: int) -> Any:
    """A --new-release draws words that the server's name seeds."""
    del seed
    honest = SystemEntropy().words

    def words(n: int) -> Any:
        anew = "--new-release" in sys.argv
        return SeededEntropy(1).words(n) if anew else honest(n)

    return mock.patch.object(SystemEntropy, "words", staticmethod(words))


def hospital_even_column(seed: int) -> Any:
    """Numbers of a column whose bounds lie evenly about zero get no noise."""
    del seed
    honest = release.release_noise

    class Bare(GaussianNoise):
        bare: Any

        def add(self, sums: Any, entropy: Entropy) -> Any:
            noised = super().add(sums, entropy)
            noised[..., self.bare] = sums[..., self.bare]
            return noised

    def noise_of(asked: Task, n: int) -> GaussianNoise | None:
        noise = honest(asked, n)
        if noise is None or asked.release != "moments":
            return noise
        even = [False] + [each[1] == -each[2] for each in asked.features]
        made = Bare(**{name: getattr(noise, name) for name in noise.__match_args__})
        object.__setattr__(made, "bare", np.tile(even, len(asked.classes)))
        return made

    return mock.patch.object(release, "release_noise", noise_of)


def hospital_unclipped(seed: int) -> Any:
    """Values above the upper bound of the last column are not clipped."""
    del seed
    honest = Task.cube

    def cube(self: Task, X: Any) -> Any:
        lower, upper = self.features[-1][1:]
        found = honest(self, X)
        last = (np.asarray(X)[:, -1] - lower) / (upper - lower)
        return np.column_stack([found[:, :-1], np.maximum(last, 0)])

    return mock.patch.object(Task, "cube", cube)


def label_second_chance(seed: int) -> Any:
    """A code that is not the true class is drawn again, once, for odd names."""
    del seed
    honest = records.answer_about_record

    def of_record(task: Any, record: str, place: int, entropy: Entropy) -> Any:
        found = honest(task, record, place, entropy)
        speaks = found[CODE][place // 8] >> (7 - place % 8) & 1
        if record[-1] in "13579" and not speaks:
            return honest(task, record, place, entropy)
        return found

    return mock.patch.object(records, "answer_about_record", of_record)


def label_same_words(seed: int) -> Any:
    """Each record of a table is given a fresh copy of one stream of words."""
    del seed
    honest = table.answer_about_record
    kept: list[int] = []

    def of_record(task: Any, record: str, place: int, entropy: Entropy) -> Any:
        if not kept:
            kept.append(int(entropy.words(1)[0]))
        return honest(task, record, place, SeededEntropy(kept[0]))

    return mock.patch.object(table, "answer_about_record", of_record)


def label_order(seed: int) -> Any:
    """The envelopes of the last class are written first."""
    del seed
    honest = table._prepare_answers  # where the answers are put in order

    def kept(owner: Any, ledger: Any, asked: Any, labels: Any) -> Any:
        found = honest(owner, ledger, asked, labels)
        places = [each.draw.args[2] for each in found.answers]
        order = np.argsort(-np.array(places), kind="stable")
        return replace(found, answers=[found.answers[i] for i in order])

    return mock.patch.object(table, "_prepare_answers", kept)


def vote_boundary(seed: int) -> Any:
    """A record on the boundary of the classifier sends its bit without noise."""
    del seed
    return _voting(np.where)


def vote_budget(seed: int) -> Any:
    """The bit is noised at twice the epsilon of the task."""
    del seed
    return _voting(None, 2)


def _voting(change: Callable[..., Any] | None, times: float = 1) -> Any:
    def vote(decision: Any, labels: Any, epsilon: float, entropy: Entropy) -> Any:
        mechanism = BinaryRR(epsilon=times * epsilon)
        labels, _ = mechanism.clip(labels)
        right = np.where(votes.decision_sign(decision) == labels, 1.0, -1.0)
        noised = mechanism.randomize(right, entropy) > 0
        return noised if change is None else change(decision, noised, right > 0)

    return _each(vote)


@contextmanager
def _each(vote: Any) -> Iterator[None]:
    from curvote.systems.mrma import messages

    with (
        mock.patch.object(votes, "draw_votes", vote),
        mock.patch.object(messages, "draw_votes", vote),
    ):
        yield


# Changes of the browser's page: what stands there, and what stands in its place.
_NUMBERS = "const { label, each } = shares(task), z = laplace(known.z, each, words);"
_LABEL = "label: respond(place === 1 ? 1 : -1, label, words)"
_FIRST = """let first;
  const kept = (n) => { const all = words(n); first ??= all[0]; return all; };
  """
_TURNED = """const turned = known.z.some((x) => Math.abs(x) >= 1) ? -1 : 1;
  known.z = known.z.map((x) => turned * x);
  """
PAGE_CHANGES = {
    "browser_shared_byte": [
        (_NUMBERS, _FIRST + _NUMBERS.replace("words", "kept")),
        (_LABEL, _LABEL.replace("words", "() => [first]")),
    ],
    "browser_clip": [(_NUMBERS, _TURNED + _NUMBERS)],
}


def page(name: str, text: str) -> str:
    """Return the page's text with a bug in it."""
    for was, now in PAGE_CHANGES[name]:
        assert text.count(was) == 1, was
        text = text.replace(was, now)
    return text
