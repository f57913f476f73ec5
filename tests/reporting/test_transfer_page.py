"""The page of transfer between servers: whose privacy, what left, what it is worth."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from curvote.cli import app
from curvote.pipeline.run.results import mean_scores
from curvote.report import figures, page, sentences
from curvote.report.data import PageData
from curvote.report.page import load_page_data
from tests import plain
from tests.hospitals import NAMES, Hospital, N, steward, take
from tests.report_data import section

STUDY: dict[str, Any] = {
    "source": {"name": "posterior_drift", "n": 80, "m": 1, "test": 100},
    "transfer": {"test": 100},
    "protocols": [
        {"name": "transfer", "label": "cells", "release": "cells", "matrix": 2},
        {"name": "transfer", "label": "moments", "release": "moments"},
        {"name": "transfer", "label": "majority", "release": "counts"},
        {"name": "transfer_clean", "label": "clean"},
    ],
    "epsilon": [2, 8],
    "replicates": 3,
    "seed": 5,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> PageData:
    """Return what the page of a small study is made of."""
    project = plain.write(tmp_path_factory.mktemp("transfer"), tiny=STUDY)
    return load_page_data(project, plain.run(project))


def test_it_promises_central_privacy_and_speaks_of_no_client(data: PageData) -> None:
    """Every record of a table is hidden, its server is trusted with it."""
    assert sentences.releases_heading(data) == "What left each server"
    told = sentences.explain_epsilon(data, 2)
    for said in ("central privacy", "(epsilon, delta)", "target included", "trusted"):
        assert said in told
    for said in (
        told,
        sentences.release_frequency(data),
        sentences.protection_statement(data),
    ):
        assert "client" not in said
    assert "each record in it" in sentences.losses_caption(data)


def test_each_release_is_listed_with_its_exact_loss(data: PageData) -> None:
    """About n records, at delta n^-2, never above epsilon; public sizes are told."""
    groups = dict(section(data, "released").groups)
    assert [name.partition(":")[0] for name in groups] == [
        "cells",
        "moments",
        "majority",
    ]
    for rows in groups.values():
        assert [(row.server, row.n) for row in rows] == [
            ("target", "80"),
            ("source1", "80"),
        ]
        for row in rows:
            assert float(row.delta) == pytest.approx(80**-2, rel=0.01)
            assert 1.99 < float(row.loss) <= 2
            assert float(row.noise) > 0
    assert any("target 80, source1 80" in line for line in data.public)


def test_weights_sum_to_one_and_sources_agree(data: PageData) -> None:
    """By setting and epsilon; the target is not compared with itself."""
    table = section(data, "weighing").table
    weights = table[table["quantity"] == "weight"]
    sums = weights.groupby(["setting", "level"])["mean"].sum()
    assert set(sums.index.get_level_values(0)) == {"cells", "moments"}
    assert np.allclose(sums, 1)
    agreement = table[(table["quantity"] == "agreement") & (table["level"] == 8)]
    known = agreement.set_index(["setting", "server"])["mean"]
    assert pd.isna(known["cells", "target"])
    assert known["cells", "source1"] > 0.3


def test_the_matrix_holds_what_each_release_does_alone(data: PageData) -> None:
    """Of the target it is AdaptTar, on the same records; it is made for one cell."""
    crossed = section(data, "crossed")
    table = crossed.table.set_index(["server", "tested"])
    assert len(table) == 4
    scores = data.scores[data.scores["metric"] == "misclassification"]
    context = (scores["protocol"] == "cells") & (scores["level"] == 2)
    (alone,) = scores[context & (scores["method"] == "adapt_tar")]["value"]
    assert table.loc[("target", "target"), "misclassification"] == pytest.approx(alone)
    assert crossed.called == "cells at epsilon 2"


def test_further_metrics_have_figures_tables_and_errors(
    data: PageData, text: str
) -> None:
    """F1 and balanced accuracy beside the error; what is clean is a level line."""
    assert [metric.name for metric in data.measured_metrics] == [
        "misclassification",
        "f1",
        "balanced",
    ]
    for metric in data.measured_metrics:
        drawn = figures.draw_lines(data, metric, narrow=False)
        assert [ax.get_title() for ax in drawn.axes] == ["cells", "moments"]
        for ax in drawn.axes:
            labels = [tick.get_text() for tick in ax.get_xticklabels()]
            assert labels == ["2", "8"]
            assert len(ax.patches) == 2  # the errors of what has no epsilon
        assert data.metric_scores(metric)["se"].notna().all()
    for said in ("F1 in percent", "Balanced accuracy in percent"):
        assert said in text


def test_the_headline_is_held_against_majority_and_clean(data: PageData) -> None:
    """Of other protocols, which hold for all; no sentence speaks of epsilon none."""
    assert "guessing the larger class errs on" in sentences.headline(data)
    assert "pooled, clean errs on" in sentences.headline(data)
    assert "none" not in sentences.verdict_sentence(data)


def test_what_asking_is_worth_is_what_the_command_says(data: PageData) -> None:
    """The page's command prints the page's numbers."""
    worth = section(data, "worth")
    _, *given = shlex.split(worth.command)
    done = CliRunner().invoke(app.app, given)
    assert done.exit_code == 0, done.exception
    alone, source, _ = worth.rows
    assert alone.risk == "100 %"
    for row in (alone, source):
        assert f"{float(row.r):.3f}"[:5] in done.stdout


def test_any_metric_is_printed(tmp_path: Path) -> None:
    """With its own standard error; one that nobody measures is told what there is."""
    project = plain.write(tmp_path, tiny=STUDY)
    record = plain.run(project, "tiny", "epsilon=[2]")
    row = next(r for r in mean_scores(project, record) if r["method"] == "precision")
    asked = ["scores", "tiny", "--project", str(tmp_path), "--metric"]
    said = CliRunner().invoke(app.app, [*asked, "f1"])
    assert f"{100 * row['f1']:.2f} ± {100 * row['f1_se']:.2f}" in said.stdout
    assert "misclassification" not in said.stdout
    refused = CliRunner().invoke(app.app, [*asked, "recall"])
    assert "balanced" in str(refused.exception)


@pytest.mark.usefixtures("blank_figures")
def test_a_real_release_says_the_same_of_what_left(tmp_path: Path) -> None:
    """Four hospitals: their sizes, budgets and losses, and no score."""
    server = steward(tmp_path / "steward")
    server.run()
    for name in NAMES:
        home = Hospital.at(tmp_path, name)
        home.init("--cap", "2", "--cap-delta", "1e-3")
        home.receive(server)
        home.released()
        home.send(server)
    take(server)
    _, record = server.run()
    made = load_page_data(server.project, record)
    said = page.render_report(made, tmp_path).read_text()
    ((_, rows),) = section(made, "released").groups
    assert {row.server: row.n for row in rows} == dict.fromkeys(NAMES, str(N))
    assert "This is a real release" in said
    assert "central privacy for each server" in said
    assert "each client" not in said
    assert not section(made, "worth").promised or section(made, "worth").rows
