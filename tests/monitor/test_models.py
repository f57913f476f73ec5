"""Real models judged at home: skops, ONNX, any function, and a whole round by HTTP.

Those of strokes are trained on people younger than 50, and judged by ever older ones.
"""

import base64
import json
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from typer.testing import CliRunner

from benchmarks.browser import Page, browser
from curvote.base.errors import UserError
from curvote.cli.app import app
from curvote.monitor import Watch, answers
from curvote.pipeline.run import results
from curvote.systems.monitor.home import model_answer
from curvote.wire.envelope import read_envelope
from tests import plain
from tests.browser.test_page import AGREE, DRAW, SHOWN, TEXT
from tests.envelope_service import NAME, serving
from tests.exchange import Server
from tests.real_files import MIRROR, needs_mirror

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
WATCH: Final = {
    "mode": "production",
    "protocol": "monitor",
    "monitor": {"question": "right", "people": 8, "reference": 0.9},
    "epsilon": 30,  # so that a word is its code, but once in 10^13
    "intake": {"fold": 2},
}
PHONEMES: Final = plain.TINY | {
    "source": {"name": "phonemes", "positive": "sh", "negative": "iy"},
    "clients": {"public": 50, "train": 300, "vote": 400, "test": 300},
    "project": {"basis": "fourier", "size": 5, "rescale": "tanh"},
    "train": {"count": 6, "size": 50},
    "replicates": 1,
    "epsilon": [4],
    "learners": ["centroid"],
}


def curvote(*words: str, state: Path | None = None) -> Any:
    """Return what a command printed as JSON."""
    env = {"XDG_STATE_HOME": str(state)} if state else {}
    done = CliRunner().invoke(app, [*words, "--json"], env=env)
    assert done.exit_code == 0, (done.output, done.exception)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def phonemes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    """Return the final model of a small study in a file, and curves with labels."""
    root = tmp_path_factory.mktemp("phonemes")
    project = plain.write(root / "study", tiny=PHONEMES)
    record = plain.run(project)
    view = results.final_views(project, record)[-1]
    model = results.final_model(project, record, view.cell)
    skops.io.dump(model, root / "model.skops")
    (file,) = Path(str(MIRROR)).glob("phoneme.data*")
    table = pd.read_csv(file)
    return root / "model.skops", table[table.g.isin(["sh", "iy"])].tail(200)


def answer(home: Path, task: Path, line: str, **options: Any) -> dict[str, Any]:
    """Answer by the command, from a home of its own."""
    home.mkdir()
    (home / "invitation.json").write_text(line)
    given = {"task": task, "invitation": home / "invitation.json"} | options
    words = [f"--{name}={value}" for name, value in given.items()]
    env = {"XDG_STATE_HOME": str(home)}
    began = CliRunner().invoke(app, ["client", "init", "--cap=30"], env=env)
    assert began.exit_code == 0, began.exception
    return dict(curvote("client", "answer", *words, "--yes", state=home))


@needs_mirror
@pytest.mark.skipif(not CHROMIUM, reason="SKIPPED: no Chromium here, nobody clicks")
def test_a_round_of_commands_and_browsers_is_counted(
    phonemes: tuple[Path, pd.DataFrame], tmp_path: Path
) -> None:
    """Curves judged by the model at home, clicks in a browser: all by one intake."""
    (model, table), server = phonemes, Server(plain.write(tmp_path, **{NAME: WATCH}))
    server.run()
    task, secret = server.published("answer")
    lines, page_file = secret.read_text().splitlines(), tmp_path / "page.html"
    curves = table.filter(regex="^x").to_numpy()
    with serving(server.project) as service, browser(str(CHROMIUM), 900, 1200) as page:
        url = f"http://127.0.0.1:{service.port}"
        for k, line in enumerate(lines[:4]):
            np.savetxt(tmp_path / "curve.csv", curves[k])
            own = {"record": tmp_path / "curve.csv", "truth": table.g.iloc[k]}
            home = tmp_path / f"home-{k}"
            done = answer(home, task, line, model=model, send=url, **own)
            assert done["sent"] == "accepted"
        curvote("client", "page", "--out", str(page_file), "--send", url)
        for line in lines[4:]:
            (tmp_path / "invitation.json").write_text(line)
            assert clicked(page, page_file, task, tmp_path / "invitation.json", 0)
        _, record = server.run()
    assert record.status == "completed"
    told = curvote("monitor", "show", NAME, "--project", str(tmp_path))
    assert (told["answers"], told["windows"][0]["n"]) == (8, 8)
    assert told["figures"][0]["low"] > 0.3
    assert not told["alarms"]


def clicked(page: Page, file: Path, task: Path, invitation: Path, button: int) -> bool:
    """Answer by the page's right or wrong button; say whether it was accepted."""
    page.open(file.as_uri(), seconds=0)
    page.until("document.readyState === 'complete' && location.protocol === 'file:'")
    page.give("#files", task, invitation)
    page.until(SHOWN)
    page.value(f"document.querySelectorAll('#answers button')[{button}].click()")
    for click in (AGREE, DRAW):
        page.value(click)
    told = TEXT.format("done")
    said = page.until(f"!/Sending|again in/.test({told}) && {told}")
    return str(said).startswith("Accepted:")


NUMBERS: Final = ["age", "hypertension", "heart_disease", "avg_glucose_level", "bmi"]
TEXTS: Final = ["gender", "smoking_status"]
# A line through the numbers, of the same people, more often positive; and the same as
# ONNX: one LinearClassifier of ai.onnx.ml with SOFTMAX, half the weights for class 1.
WEIGHTS: Final = [0.078, -0.064, -5.412, -0.011, 0.061]
ONNX: Final = (
    "c-"
    "rIOaAM(N5a4y<<Kjxp)XUGytI*5M5n!~M#Kd)+k&CfHh&3lMDK$rkrMR>xRY|}nGcPr<$T=smxHvN{Gq"
    "p&|nTsbmKQ%2aGdVLgucX+ve4qSY+k7ErTU%*;T?g9;%PrQn%C~>+0ZG_`B=&+N4uB+fgCuMgFtTY$a&"
    "cwmm82FWrxpN>D73w04<hzMqy&;dwt-zy91m1h?7-"
    "l_xPXyeONNWDAiuaIzN9EIuQ)BgC|8L+*xxP0*D+!NBeNBfcZ3+zqeMV{;pgJzU=-"
    "ryVisb|<6`1qO%maPdXJlnlY?D|6)ck^&IR@@x^gA}MIBNw"
)


@pytest.fixture(scope="module")
def strokes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, pd.DataFrame]:
    """Return a folder with models, the one with texts, and the stream that it meets."""
    root = tmp_path_factory.mktemp("strokes")
    file = Path(str(MIRROR)) / "healthcare-dataset-stroke-data.csv"
    table = pd.read_csv(file, na_values="N/A")  # of bmi; Unknown is a way to smoke
    young = table[table.age < 50].sample(frac=1, random_state=0)
    old = table[table.age >= 50].sort_values("age", kind="stable")
    train, stream = young[:1500], pd.concat([young[1500:], old], ignore_index=True)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore")
    both = ColumnTransformer([("n", numbers, NUMBERS), ("t", texts, TEXTS)])
    model = make_pipeline(both, LogisticRegression())
    model.fit(train[NUMBERS + TEXTS], train.stroke)
    skops.io.dump(model, root / "texts.skops")
    line = LogisticRegression()
    line.coef_, line.intercept_ = np.array([WEIGHTS]), np.array([-3.41])
    line.classes_, line.n_features_in_ = np.array([0, 1]), 5
    skops.io.dump(line, root / "numbers.skops")
    (root / "numbers.onnx").write_bytes(zlib.decompress(base64.b85decode(ONNX)))
    return root, model, stream


def write_record(path: Path, row: Any, names: list[str]) -> Path:
    """Write one record as its owner has it."""
    pd.DataFrame([row])[names].to_csv(path, index=False, na_rep="N/A")
    return path


@needs_mirror
def test_people_judge_models_of_their_strokes(strokes: Any, tmp_path: Path) -> None:
    """By a skops file, by ONNX, and by what some function said: all are counted."""
    root, model, stream = strokes
    server = Server(plain.write(tmp_path, **{NAME: WATCH}))
    server.run()
    task, secret = server.published("answer")
    rows, sent, right = stream[-400::50], [], []
    for k, (line, (_, row)) in enumerate(
        zip(secret.read_text().splitlines(), rows.iterrows(), strict=True)
    ):
        record = write_record(tmp_path / "r.csv", row, NUMBERS + TEXTS)
        given = {"model": root / "texts.skops", "record": record}
        said = str(model.predict(pd.DataFrame([row])[NUMBERS + TEXTS])[0])
        if k >= 6:
            said = str(int(row.age > 70))
            given = {"answered": said}
        elif k >= 3:
            record = write_record(tmp_path / "r.csv", row.fillna(28.0), NUMBERS)
            given = {"model": root / "numbers.onnx", "record": record}
            said = model_answer(root / "numbers.skops", record)[0]
        done = answer(tmp_path / f"home-{k}", task, line, truth=row.stroke, **given)
        sent.append(Path(done["envelope"]).read_bytes())
        right.append(said == str(row.stroke))
    codes = [read_envelope(data).payload["code"] for data in sent]
    assert codes == [int(each) for each in right]
    server.take(sent)
    server.run()
    told = curvote("monitor", "show", NAME, "--project", str(tmp_path))
    assert told["answers"] == 8


@needs_mirror
def test_an_ever_older_stream_gives_an_alarm(strokes: Any) -> None:
    """Not while people are as in training; the truth is inside at every look."""
    _, model, stream = strokes
    said = model.predict(stream[NUMBERS + TEXTS])
    right, looks = (said == stream.stroke).to_numpy(), range(0, len(stream), 200)
    assert right[:1400].mean() > 0.99
    assert right[-500:].mean() < 0.85
    found = []
    for seed in range(12):
        watch = Watch(epsilon=2, reference=0.99, margin=0.03)
        codes = answers(stream.stroke, said, epsilon=2, random_state=100 + seed)
        for first in looks:
            watch.add(codes[first : first + 200])
            _, low, high = watch.interval()
            assert low <= right[: first + 200].mean() <= high
        found.append(watch.alarm or 0)
    assert min(found) > 1400, found


@needs_mirror
def test_a_model_is_the_same_in_both_formats(strokes: Any, tmp_path: Path) -> None:
    """Answers and how sure it is; what is wrong with a file is said in words."""
    (root, _, stream), answered = strokes, set()
    for _, row in stream[::72].iterrows():
        record = write_record(tmp_path / "r.csv", row.fillna(28.0), NUMBERS)
        pair = [
            model_answer(root / f"numbers.{end}", record) for end in ("skops", "onnx")
        ]
        assert pair[0] == (pair[1][0], pytest.approx(pair[1][1], abs=1e-4))
        answered.add(pair[0][0])
    assert answered == {"0", "1"}
    bad = write_record(tmp_path / "b.csv", {**row, "age": "old", "bmi": 1e999}, NUMBERS)
    few = write_record(tmp_path / "f.csv", row, NUMBERS[1:])
    (tmp_path / "no.onnx").write_bytes(b"\x08" * 99)
    (tmp_path / "no.skops").write_bytes(b"PK" * 99)
    for end in ("skops", "onnx"):
        assert model_answer(root / f"numbers.{end}", bad)[0] in {"", "0", "1"}
        for file, given, words in (
            (root / f"numbers.{end}", few, "4 columns; the model reads 5"),
            (root / f"none.{end}", few, "no such file|no ONNX"),
            (tmp_path / f"no.{end}", few, "no skops file|holds no ONNX model"),
        ):
            with pytest.raises(UserError, match=words):
                model_answer(file, given)
    with pytest.raises(UserError, match="no column 'age'"):
        model_answer(root / "texts.skops", few)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "onnxruntime", None)
        with pytest.raises(UserError, match="pip install 'curvote\\[onnx\\]'"):
            model_answer(root / "numbers.onnx", few)
