"""What noise does to a distribution: real reports agree with the formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.advise.mrma import pointwise_utility, total_variation
from curvote.base.privacy import label_budget_share
from curvote.data.simulation.records import positive_probability
from curvote.pipeline.run.results import mean_scores
from curvote.systems.mrma.stages import label_agreement, outside_share
from tests import plain

SLOPE = 4.0


def rows(root: Path, **changes: Any) -> list[dict[str, Any]]:
    """Return the scores of protocol ``drift`` on uniform records."""
    pipeline = {
        "protocol": "drift",
        "label": "drift",
        "source": {"name": "uniform", "d": 2, "slope": SLOPE},
        "clients": {"train": 5000},
        "project": {"basis": "identity", "rescale": "min_max", "lower": -1, "upper": 1},
        "epsilon": [2, 20],
        "replicates": 20,
        "seed": 3,
    }
    project = plain.write(root, tiny=pipeline | changes)
    return mean_scores(project, plain.run(project, block=20))


def test_the_total_variation_of_reports_is_the_closed_form(tmp_path: Path) -> None:
    """As many reports lie where no record can as the formula says: 5 se."""
    found = [row for row in rows(tmp_path) if row["metric"] == "total_variation"]
    assert len(found) == 2
    for row in found:
        epsilon_z = row["epsilon"] * (1 - label_budget_share("equal", 2))
        assert abs(row["value"] - total_variation(2, epsilon_z)) < 5 * row["se"]


@pytest.mark.parametrize("at", [0.5, -1.5])
def test_labels_agree_as_proposition_2_says(tmp_path: Path, at: float) -> None:
    """Inside and beyond the records' range: 5 se and the bin's width."""
    source = {"name": "uniform", "d": 1, "slope": SLOPE}
    every = rows(tmp_path, source=source, drift={"at": at})
    found = [row for row in every if row["metric"] == "agreement"]
    assert len(found) == 2
    for row in found:
        half = row["epsilon"] / 2
        keep = np.exp(half) / (1 + np.exp(half))
        law = pointwise_utility(
            lambda z: positive_probability(z, SLOPE), at, half, keep
        )
        assert abs(float(law) - row["value"]) < 5 * row["se"] + 0.002


def test_a_report_in_the_cube_may_be_a_record_and_no_other() -> None:
    """Two of four reports lie outside, where no record can be."""
    z = np.array([[0.0, 0.9], [1.0, -1.0], [1.1, 0.0], [0.0, -7.0]])
    assert outside_share({"z": z}) == pytest.approx(0.5)


def test_where_no_report_is_near_nothing_is_said() -> None:
    """An empty neighbourhood gives no row, not a number out of nothing."""
    reports = {"z": np.array([[5.0]]), "label": np.array([1])}
    assert label_agreement(reports, SLOPE, 0.0) == {}
    assert label_agreement(reports, SLOPE, -3.0) == {}
    assert set(label_agreement(reports, SLOPE, 3.0)) == {"agreement"}
