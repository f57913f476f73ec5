"""The Python that docs show runs as it stands there."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.linear_model import LogisticRegression

from curvote.flows import cli
from tests.house import ROOT
from tests.utility.models_of import stroke_like

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(
    ("page", "about"),
    [
        ("docs/library.md", "TransferKernelClassifier"),
        ("docs/library.md", "private_score"),
        ("docs/library.md", "FrozenEstimator"),
        ("docs/transfer.md", "combine"),
        ("docs/utility.md", "quantify"),
    ],
)
def test_an_example_runs_as_it_stands(
    page: str,
    about: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With the names that the page imports and no more."""
    text = (ROOT / page).read_text(encoding="utf-8")
    (example,) = (block for block in BLOCK.findall(text) if about in block)
    monkeypatch.chdir(ROOT)
    exec(example, {"__name__": "__main__"})
    assert capsys.readouterr().out.strip()


def test_the_command_on_a_file_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it stands in the README: it ends well, and says what to send."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## Before you collect")[2].partition("\n## ")[0]
    (line,) = re.findall(r"^\$ (curvote utility .*)$", section, re.MULTILINE)
    made = stroke_like(80)
    people = pd.DataFrame(made.X, columns=list(made.names))
    model = LogisticRegression(max_iter=5000).fit(people, made.y)
    skops.io.dump(model, tmp_path / "model.skops")
    people.assign(stroke=made.y).to_csv(tmp_path / "people.csv", index=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", shlex.split(line))
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().out
    assert not end.value.code
    assert "nothing sent" in said
    assert "evidence" in said
    assert (tmp_path / "people-utility.png").is_file()
    assert np.isfinite(float(said.splitlines()[1].split()[3]))
