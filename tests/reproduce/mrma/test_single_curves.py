"""Figures A.2, A.7 and A.8: of single classifiers, and of single curves."""

import pandas as pd
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from tests.real_files import needs_mirror
from tests.reproduce_rows import check_rows, entries_of, evidence

ENTRIES = entries_of("mrma")
A7 = "figure-a7", "nhanes-2003", "mean of healthy HDL"


def test_reversal_lives_on_the_spread() -> None:
    """Accuracies .2 and .8 are a coin on average, and .8 with the bad one reversed."""
    cells = [(r, e, v) for r in ("3000", "50") for e in (1.0, 10.0) for v in (0.8, 0.2)]
    table = pd.DataFrame(cells, columns=["reports", "epsilon", "value"])
    table = table.assign(learner="cg", method="weak")
    one = evidence("figure-a2", replicates=table)
    rows = ENTRIES["figure-a2"].rows(one)
    check_rows("figure-a2", rows)
    means = {(row["setting"], row["epsilon"]): row["curvote"] for row in rows}
    assert means["50 reports, as trained", 1.0] == pytest.approx(50)
    assert means["50 reports, reversed if bad", 1.0] == pytest.approx(80)
    drawing = ENTRIES["figure-a2"].draw(rows, one, "svg")["svg"].decode()
    assert "3000 reports, mean dashed" in drawing


@needs_mirror
@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        pytest.param(*A7, marks=pytest.mark.faults),  # reads large files
        ("figure-a8", "phonemes", "mean of sh"),
    ],
)
def test_stages_show_what_is_left_of_two_groups(
    name: str, source: str, words: str
) -> None:
    """Tanh as printed loses half of it, and less where centre and scale are public."""
    rows = ENTRIES[name].rows(evidence(name))
    check_rows(name, rows)
    assert {row["pipeline"] for row in rows} == {source}
    share = {row["representation"]: row["curvote"] for row in rows}
    assert share["raw"] < share["projected"]
    assert share["tanh, as printed"] < 0.6 * share["projected"]
    assert share["tanh, as printed"] < share["tanh, centred and scaled"]
    drawing = ENTRIES[name].draw(rows, evidence(name), "svg")["svg"].decode()
    assert words in drawing


def test_curves_that_are_not_here_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that says where they come from; nothing is downloaded."""
    monkeypatch.delenv(raw_files.MIRROR, raising=False)
    with pytest.raises(UserError, match=r"needs nhanes.*`curvote data fetch`"):
        ENTRIES["figure-a7"].rows(evidence("figure-a7"))
