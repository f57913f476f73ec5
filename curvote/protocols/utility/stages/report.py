"""Stage report: the figures of every deployment, and the one to recommend."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from curvote.chain.measure import SCORES
from curvote.chain.stage import Columns, Here, Rows
from curvote.protocols.measures import AGREEMENT
from curvote.protocols.utility import deployed
from curvote.protocols.utility.deployed import Found
from curvote.protocols.utility.given import settings_of
from curvote.protocols.utility.known import known_of
from curvote.protocols.utility.measured import Score, score_table, scores_of
from curvote.protocols.utility.methods import (
    EQUAL,
    FEATURES,
    METRICS,
    OUTPUT,
    RECOMMENDED,
    VECTOR,
)
from curvote.utility.deployments.deployment import OUTPUT as ANSWER
from curvote.utility.deployments.deployment import Deployment
from curvote.utility.deployments.floors import floors
from curvote.utility.deployments.scan import measured
from curvote.utility.known import Known
from curvote.utility.recommendation import Recommendation, recommend
from curvote.utility.setting import Setting

_TARGET = "deployments.target"


def one(here: Here) -> Rows:
    """Return the tables ``scores`` and ``recommended`` of one total epsilon."""
    setting = settings_of(here)[FEATURES]
    known = known_of(here, FEATURES, setting)
    sent, free = [*_sent(here)], [*_free(here, setting, known)]
    scan = [(one, found) for one, _, found in (*free, *sent)]
    choose = partial(recommend, setting, known, scan, seed=here.params["seed"])
    best, target = choose(epsilon=here.params["epsilon"]), here.params[_TARGET]
    reached = None if target is None else choose(target=target)
    scores = [*_scores(setting, sent, free), *_recommended(best)]
    chosen = _table(setting, best, reached)
    return {SCORES.name: score_table(scores), "recommended": chosen}


def _sent(here: Here) -> Iterator[Found]:
    """Yield what each deployment of each mechanism does."""
    for name in here.inputs:
        if name.startswith("agree@"):
            yield from deployed.measurements(here.rows(name, "agreed"))


def _free(here: Here, setting: Setting, known: Known) -> Iterator[Found]:
    """Yield the floors, and the randomised answer at this epsilon."""
    answer = Deployment(ANSWER, here.params["epsilon"])
    for one in (*floors(setting), answer):
        yield one, one.words(setting.names), measured(setting, known, one)


def _scores(setting: Setting, sent: list[Found], free: list[Found]) -> Iterator[Score]:
    """Yield the scores of each deployment in its words, and of those with a name."""
    for one, words, found in sent:
        yield from scores_of(words, setting, one, found)
    named = {OUTPUT.name: free[-1], **_first(sent, EQUAL.name, VECTOR.name)}
    for name, (one, _, found) in named.items():
        yield from scores_of(name, setting, one, found)


def _first(sent: list[Found], equal: str, joint: str) -> dict[str, Found]:
    """Return the first deployment of either kind that is read raw, where there is one.

    The first that the pipeline names, not the best: a choice would flatter.
    """
    named: dict[str, Found] = {}
    for found in sent:
        one = found[0]
        if one.read == "raw" and not one.project:
            if one.split is None:
                named.setdefault(joint, found)
            elif len(set(one.split)) == 1:
                named.setdefault(equal, found)
    return named


def _recommended(best: Recommendation) -> Iterator[Score]:
    """Yield the figures of the half of the records that chose nothing."""
    row = best.row
    if row is None:
        return
    ends = {AGREEMENT.name: (row.lower, row.upper)}
    for metric in METRICS:
        value = getattr(row, metric.name)
        if value is not None:
            low, high = ends.get(metric.name, (value, value))
            yield Score(RECOMMENDED.name, metric.name, value, low, high)


def _table(
    setting: Setting, best: Recommendation, reached: Recommendation | None
) -> Columns:
    """Return the recommendation as one row, and what reaches the target, if any."""
    chosen = best.deployment
    texts = {
        "deployment": "" if chosen is None else deployed.written(chosen),
        "words": _words(setting, best),
        "reason": best.reason,
        "reaches": "" if reached is None else _words(setting, reached),
    }
    return {name: np.array([text], dtype=object) for name, text in texts.items()}


def _words(setting: Setting, said: Recommendation) -> str:
    chosen = said.deployment
    return "" if chosen is None else chosen.words(setting.names)
