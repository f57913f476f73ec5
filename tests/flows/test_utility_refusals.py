"""What `curvote utility` refuses: one message, and nothing on standard output."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from curvote.cli import app
from curvote.pipeline.config.project import Project
from tests.asked_utility import ASK, folder, people, run

__all__ = ["folder", "run"]


def without(option: str) -> list[str]:
    """Return what is asked, but for one option and its value."""
    at = ASK.index(option)
    return [*ASK[:at], *ASK[at + 2 :]]


BAD = [
    (("model.pkl", *ASK), "runs whatever code is in it"),
    (("model.skops", *ASK, "--trust-pickle", "model.pkl"), "leave out --trust-pickle"),
    (("number.skops", *ASK), "is a regressor"),
    (("nothing.skops", *ASK), "there is no such file"),
    (("bare.skops", *ASK), "keeps no names of its 6 columns"),
    (("model.skops", *ASK, "--features", "age,bmi"), "leave out --features"),
    (("model.skops", *without("--sensitive")), "are sensitive"),
    (("model.skops", *ASK, "--sensitive", "agee"), "Did you mean 'age'"),
    (("model.skops", *ASK, "--bounds", "bmi=1:2"), "of bmi twice"),
    (("model.skops", *ASK[:4]), "no bounds of age, bmi"),
    (("model.skops", *ASK[:4], "--bounds", "age=9:1"), "the other way round"),
    (("model.skops", *without("--data")), "--data FILE.csv"),
    (("told.skops", *ASK, "--sensitive", "gender"), "noise is for numbers"),
    (("model.skops", *ASK, "--epsilon", "0"), "epsilon is 0"),
    (("model.skops", *ASK, "--epsilon", "-1"), "epsilon is -1"),
    (("model.skops", *ASK, "--epsilon", "nan"), "epsilon is nan"),
    (("model.skops", *ASK, "--target", "1"), "target is 1.0"),
    (("model.skops", *ASK, "--target", "0"), "target is 0.0"),
    (("model.skops", *ASK, "--confidence", "1"), "confidence is 1.0"),
    (("model.skops", *ASK, "--mechanism", "pm01"), "Did you mean 'pm_01'"),
    (("model.skops", *ASK, "--mechanism", "gaussian"), "gaussian needs delta"),
    (("model.skops", *ASK, "--mechanism", "alibi"), "its outputs are codes"),
    (("model.skops", *ASK, "--mechanism", "subset_selection"), "outputs are codes"),
    (("model.skops", *ASK, "--label", "strok"), "Did you mean 'stroke'"),
    (("model.skops", *ASK, "--positive", "1"), "name its column by --label"),
    (("model.skops", *ASK, "--label", "gender"), "none of the classes"),
    (("model.skops", *ASK, "--group", "glucose"), "different values"),
    (("model.skops", *ASK, "--train", "train.csv"), "needs the column of the label"),
    (("model.skops", *ASK, "--metric", "accuracy"), "accuracy is about a label"),
    (("model.skops", *ASK, "--metric", "utility"), "metric is 'utility'"),
    (("model.skops", *ASK, "--data", "model.pkl"), "suffix is '.pkl'"),
    (("model.skops", *ASK, "--read", "decode"), "--public FILE.csv"),
    (("model.skops", *ASK, "--read", "retrain"), "--train FILE.csv"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_input_is_one_message(run: Any, words: tuple[str, ...], said: str) -> None:
    """Exit 2, nothing on standard output, no traceback."""
    code, out, err = run(*words)
    assert code == 2
    assert said in err
    assert not out
    assert "Traceback" not in err
    assert "[2/" not in err


@pytest.mark.parametrize(
    ("cell", "said"),
    [("", "bmi has 1 gaps in 60 records"), ("fat", "such as 'fat'")],
)
def test_gaps_and_text_are_refused(
    run: Any, folder: Path, cell: str, said: str
) -> None:
    """With the column and the count."""
    frame = people(60, 3).astype({"bmi": object})
    frame.loc[7, "bmi"] = cell
    frame.to_csv(folder / "bad.csv", index=False)
    code, out, err = run("model.skops", *ASK, "--data", "bad.csv")
    assert (code, out) == (2, "")
    assert said in err


def test_a_name_that_is_no_pipeline_is_said(
    finished: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Did you mean; and several models want one named."""
    monkeypatch.chdir(finished.root)
    for name, told in (("tinny", "Did you mean 'tiny'"), ("tiny", "name one by")):
        monkeypatch.setattr(sys, "argv", ["curvote", "utility", name])
        with pytest.raises(SystemExit) as end:
            app.main()
        assert end.value.code == 2
        assert told in capsys.readouterr().err
