"""`curvote utility` as it is asked: records, models, and the command itself."""

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from curvote.cli import app
from tests.utility.models_of import stroke_like

ASK = ("--data", "people.csv", "--sensitive", "age,bmi", "--bounds", "age=0:100")
ASK = (*ASK, "--bounds", "bmi=12:60")
QUICK = ("--mechanism", "pm_01", "--mechanism", "joint_box", "--epsilon", "2")


def people(n: int, seed: int) -> pd.DataFrame:
    """Return generated people with a label, a group and a text."""
    made = stroke_like(n, seed)
    frame = pd.DataFrame(made.X, columns=list(made.names))
    frame["gender"] = np.where(np.arange(n) % 3 == 0, "m", "f")
    return frame.assign(stroke=made.y)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with records and models; tests write beside them only."""
    made = tmp_path_factory.mktemp("utility")
    train, names = people(400, 2), list(stroke_like(1).names)
    people(60, 3).to_csv(made / "people.csv", index=False)
    people(60, 3).to_parquet(made / "people.parquet", index=False)
    people(50, 4).to_csv(made / "public.csv", index=False)
    train.to_csv(made / "train.csv", index=False)
    logistic = make_pipeline(StandardScaler(), LogisticRegression())
    skops.io.dump(logistic.fit(train[names], train.stroke), made / "model.skops")
    (made / "model.pkl").write_bytes(pickle.dumps(logistic))
    bare = LogisticRegression(max_iter=5000).fit(train[names].to_numpy(), train.stroke)
    skops.io.dump(bare, made / "bare.skops")
    number = LinearRegression().fit(train[names], train.stroke)
    skops.io.dump(number, made / "number.skops")
    columns = make_column_transformer(
        (StandardScaler(), names), (OneHotEncoder(), ["gender"])
    )
    told = make_pipeline(columns, LogisticRegression())
    told.fit(train[[*names, "gender"]], train.stroke)
    skops.io.dump(told, made / "told.skops")
    always = LogisticRegression(max_iter=5000).fit(train[names], train.stroke)
    always.intercept_[:] = 1e6
    skops.io.dump(always, made / "always.skops")
    return made


@pytest.fixture
def run(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Any:
    """Return the command, standing in the folder: exit code, output, errors."""
    monkeypatch.chdir(folder)

    def one(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["curvote", "utility", *words])
        with pytest.raises(SystemExit) as end:
            app.main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return one
