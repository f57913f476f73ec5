"""The sentences and the table of the report state what the scores say."""

from __future__ import annotations

import pandas as pd
import pytest

from curvote.messages.measures import MISCLASSIFICATION
from curvote.report import sentences
from curvote.report.data import methods_by_name, score_table
from curvote.systems.common.page.utilities import NonePassed
from tests.report_data import (
    EPSILONS,
    LEARNERS,
    PROGRESS,
    make_page,
    make_score,
    make_scores,
)


def test_headline_states_the_best_learner_at_epsilon_one() -> None:
    """The first sentence holds MRMA's best error, guessing and Bayes, in percent."""
    text = sentences.headline(make_page())
    assert text.startswith("At epsilon 1, MRMA with centroid errs on 12.0 % (± 0.1)")
    assert "guessing the larger class errs on 48.1 %" in text
    assert text.endswith("is 10.0 %.")


def _known(bayes: float | None) -> dict[str, float]:
    return {} if bayes is None else {"misclassification": bayes}


@pytest.mark.parametrize("bayes", [None, 0.25])
def test_headline_speaks_of_bayes_only_if_known(bayes: float | None) -> None:
    """An unknown Bayes error is not mentioned; a known one is."""
    assert ("25.0 %" in sentences.headline(make_page(bounds=_known(bayes)))) is bool(
        bayes
    )


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ((0.40, 0.30), "at every epsilon tried"),
        ((0.50, 0.30), "from epsilon 2 on; at 1 it is not"),
        ((0.30, 0.479), "largest epsilon tried, 2, MRMA with a is not clearly"),
    ],
)
def test_verdict_needs_more_than_noise(
    errors: tuple[float, ...], expected: str
) -> None:
    """A level counts as better than guessing only beyond two standard errors."""
    rows = [
        make_score(e, "a", "mrma", x) for e, x in zip((1.0, 2.0), errors, strict=True)
    ]
    rows += [make_score(e, None, "majority", 0.48) for e in (1.0, 2.0)]
    assert expected in sentences.verdict_sentence(make_page(scores=pd.DataFrame(rows)))


def test_score_table_reads_in_fixed_order() -> None:
    """Rows follow epsilon and the methods' order, whatever the order of the input."""
    scores = make_scores().sample(frac=1, random_state=3)
    table = score_table(scores, MISCLASSIFICATION, mark="*")
    methods = [key for key in methods_by_name() if key in {*PROGRESS, "majority"}]
    assert methods[:2] + methods[-1:] == ["mrma", "weak", "majority"]
    assert list(table.index) == [(e, m) for e in EPSILONS for m in methods]
    assert table.loc[(1.0, "mrma"), "centroid"] == "12.00 ± 0.10*"
    assert table.loc[(1.0, "majority")].nunique() == 1
    assert table.stack().str.endswith("*").groupby("level").sum().eq(1).all()


def test_protocols_are_told_apart() -> None:
    """Two protocols with the same method fill two rows, each with its own number."""
    one = make_scores()
    both = pd.concat([one, one.assign(protocol="direct", value=0.25)])
    table = score_table(both, MISCLASSIFICATION)
    assert table.loc[(1.0, "mrma: mrma"), "centroid"].startswith("12.00")
    assert table.loc[(1.0, "direct: mrma"), "centroid"].startswith("25.00")


def test_how_often_none_passed_is_told() -> None:
    """Methods where it happened are listed, in percent for each epsilon."""
    expected = [
        (f"{method}, {learner}", ["0", "0", "48", "0"])
        for method in ("MRMA", "MA")
        for learner in LEARNERS
    ]
    assert NonePassed(0.8, make_scores()).rows == expected
