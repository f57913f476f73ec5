"""`curvote reproduce beyond`: which rows stand, what is lost, what is written."""

import json
from collections import Counter
from typing import Any

import pytest

from curvote.papers.mrma.contest import (
    contest_cells,
    markdown,
    table_lines,
)
from curvote.papers.mrma.figures import stated_settings
from curvote.papers.registry import reproductions
from curvote.papers.rows import Row, select
from tests.reproduce_rows import (
    CONTEST_EPSILONS,
    comparison,
    evidence,
    row,
    summaries,
    svg,
)

BEYOND = reproductions()["beyond"]
PHONEMES = "beyond-phonemes"
MADE_UP = comparison("beyond", summaries("beyond"))


def score(protocol: str, method: str, percent: float, **given: Any) -> dict[str, Any]:
    """A score row of one setting at epsilon 1; value in percent, se in points."""
    se = given.pop("se", 0.0)
    named = {"protocol": protocol, "setting": {"protocol": protocol}, "epsilon": 1.0}
    plain = named | {"se": se if se is None else se / 100} | given
    return row(PHONEMES, method, percent / 100, **plain)


def rows(*given: dict[str, Any]) -> list[Row]:
    """The rows of `reproduce beyond` for these scores."""
    return comparison("beyond", given)


def only(*given: dict[str, Any]) -> Any:
    """The one cell of these scores."""
    (cell,) = contest_cells(rows(*given))
    return cell


def test_every_pipeline_is_a_setting() -> None:
    """The pipelines are `beyond-*`; `setting` is the rest, and no protocol's label.

    `auto` has one row for each cell, also where it took the majority, which is then its
    method; the majority stands beside its own protocol's only where a protocol gave
    nothing else.
    """
    settings = list(dict.fromkeys(one["setting"] for one in MADE_UP))
    assert [f"beyond-{name}" for name in settings] == list(BEYOND.pipelines)
    assert {one["pipeline"] for one in MADE_UP} == set(BEYOND.pipelines)
    auto = select(MADE_UP, protocol="auto")
    cells = Counter((one["setting"], one["epsilon"]) for one in auto)
    assert len(cells) == len(BEYOND.pipelines) * len(CONTEST_EPSILONS)
    assert set(cells.values()) == {1}
    assert {one["method"] for one in select(auto, epsilon=0.1)} == {"majority"}
    majority = {
        (r["protocol"], r["epsilon"]) for r in select(MADE_UP, method="majority")
    }
    own = {("majority", epsilon) for epsilon in CONTEST_EPSILONS}
    assert majority == own | {("auto", 0.1)}


def test_what_auto_took_is_judged_by_what_it_ends_in() -> None:
    """Votes also say what the best single direction does: no rule of `auto`."""
    cell = only(
        score("auto", "best_single", 45.0),
        score("auto", "votes", 30.0),
        score("majority", "majority", 35.0),
    )
    assert (cell.auto["method"], cell.verdict) == ("votes", "best")


def test_rows_are_sorted_and_beside_nothing_printed() -> None:
    """By setting, protocol, learner, method and epsilon, each as it first came."""
    mine = [one for one in MADE_UP if one["setting"] == "phonemes"]
    protocols = [one["protocol"] for one in mine]
    assert protocols == sorted(protocols, key=list(dict.fromkeys(protocols)).index)
    learners = [one["learner"] for one in mine if one["protocol"] == "mrma"]
    assert learners == sorted(learners, key=["logistic", "centroid", None].index)
    for name in ("published", "corrected", "z"):
        assert {one[name] for one in MADE_UP} == {None}


@pytest.mark.parametrize(
    ("auto", "se", "verdict"),
    [
        (20.0, 0.0, "best"),
        (20.5, 0.0, "within"),
        (21.0, 0.0, "within"),  # exactly one point
        (21.01, 0.0, "lost"),
        (22.0, 1.0, "within"),  # two standard errors are more than one point
        (22.5, 1.25, "within"),  # exactly two standard errors: hypot(.75, 1) = 1.25
        (22.51, 1.25, "lost"),
        (21.5, None, "lost"),  # one replicate: only the point counts
    ],
)
@pytest.mark.parametrize("rival", [("mrma", "weak"), ("majority", "majority")])
def test_the_larger_of_both_limits_counts(auto, se, verdict, rival):
    """A point or two standard errors of the difference; at the limit a cell holds."""
    mine, other = (se * 0.6, se * 0.8) if se else (se, se)
    cell = only(
        score("auto", "two", auto, se=mine), score(*rival, 20, se=other, learner="cg")
    )
    assert cell.verdict == verdict
    assert bool(cell.better) == (verdict == "lost")


def test_equal_counts_of_errors_are_exactly_a_point_apart() -> None:
    """Rounding errors of sums do not lose a cell."""
    third = score("auto", "two", 100 * (0.1 + 0.2))
    assert only(third, score("majority", "majority", 29)).verdict == "within"


def test_published_is_what_mrma_has_with_laplace() -> None:
    """Every method, learner and the histogram count; other labels never do."""
    mine = score("auto", "mean", 30)
    others = [
        score("mrma sampled", "mrma", 1, learner="centroid"),
        score("mrma_privunit", "mrma", 1),
        score("votes", "votes", 1),
        score("clean", "clean", 1, epsilon=None),
        score("mrma", "mrma", 1, epsilon=2.0),
    ]
    assert only(mine, *others).rivals == ()
    weak = score("mrma", "weak", 12, learner="cg")
    histogram = score("mrma", "histogram", 11)
    assert [r["method"] for r in only(mine, weak, *others).rivals] == ["weak"]
    assert only(mine, weak, histogram, *others).rivals[0]["method"] == "histogram"


def test_lost_cells_are_told_with_what_is_better() -> None:
    """Setting, epsilon, the value of `auto`, and whose value is better."""
    cell = only(
        score("auto", "two", 30, se=0.5),
        score("mrma", "best_single", 20, se=0.25, learner="cg"),
        score("majority", "majority", 29.5),
    )
    assert str(cell) == (
        "phonemes, epsilon 1: auto (two) 30.00 ± 0.50,"
        " better: mrma, cg (best single) 20.00 ± 0.25"
    )


def test_last_words_count_what_is_asked_apart() -> None:
    """Small epsilons are counted by themselves; each lost cell has a line.

    Best, within and lost are all cells.
    """
    cells = contest_cells(MADE_UP)
    assert {cell.verdict for cell in cells} <= {"best", "within", "lost"}
    assert len(cells) == 60
    said = list(BEYOND.conclusions(MADE_UP))
    assert said[1].startswith("45 of 50 cells with epsilon of at least 0.5 hold")
    assert said[2].startswith("10 of 10 cells with epsilon below 0.5 hold")
    lost = [line for line in said if line.startswith("lost: ")]
    assert len(lost) == 5
    assert all("stroke" in line and "better: majority" in line for line in lost)
    assert said[3:] == lost


def test_table_has_a_line_for_each_protocol_and_learner() -> None:
    """Each shows what it ends in; the other published methods share one line."""
    mine = [one for one in MADE_UP if one["setting"] == "employee"]
    found = table_lines(mine)
    assert list(found) == [
        "auto",
        "direct",
        "votes",
        "mrma, logistic",
        "mrma, centroid",
        "mrma, best other method",
        "mrma sampled, centroid",
        "mrma_privunit",
        "majority",
        "clean, logistic",
    ]
    for name in ("mrma, logistic", "mrma sampled, centroid", "mrma_privunit"):
        assert {one["method"] for one in found[name]} == {"mrma"}
    for line in found.values():
        assert len({one["epsilon"] for one in line}) == len(line)
    shown, columns = BEYOND.laid_out(mine)
    assert columns == [
        "setting",
        "protocol",
        *(f"epsilon {e:g}" for e in CONTEST_EPSILONS),
        "no privacy",
    ]
    assert [line["protocol"] for line in shown] == list(found)


def test_page_has_every_setting_and_marks_what_is_lost() -> None:
    """A section a setting, a mark for each lost cell, and how it was made."""
    page = markdown(MADE_UP, 100, 7)
    for name in BEYOND.pipelines:
        assert f"\n### {name.removeprefix('beyond-')}\n" in page
    assert "over 100 replicates" in page
    assert "`curvote reproduce beyond --replicates 100 --seed 7`" in page
    table = page.split("### stroke")[1]
    assert table.count("(two) †") == 5
    assert table.count("- † epsilon") == 5
    assert "(two) †" not in page.split("### stroke")[0]
    assert "(ma, logistic)" in page


def test_page_is_markdown() -> None:
    """Each table has lines of equally many cells, whatever a label holds."""
    odd = [score("a|b", "mrma", 20, learner="[cg]"), score("auto", "mean", 10)]
    page = markdown(rows(*odd), 1)
    assert "over 1 replicate." in page
    assert r"a\|b, [cg]" in page
    cut = [line for line in page.splitlines() if line.startswith("|")]
    assert {line.replace(r"\|", "").count("|") for line in cut} == {3}
    assert "No cell is lost." in page


def test_same_rows_same_page_and_drawing() -> None:
    """Nothing but the rows shows: no date, no place."""
    few = [one for one in MADE_UP if one["setting"] in {"phonemes", "stroke"}]
    assert markdown(few, 9) == markdown(list(few), 9)
    drawn = svg("beyond", few)
    assert drawn == svg("beyond", few)
    assert "<dc:date" not in drawn


@pytest.mark.parametrize(
    "given",
    [
        [score("new", "unheard of", 20, learner="x")],
        [score("new", "majority", 20)],
        [score("auto", "mean", 20, se=None)],
        [score("clean", "clean", 20, epsilon=None)],
    ],
)
def test_unknown_protocols_and_absent_rivals_are_shown(given):
    """Whatever pipelines are changed to, their rows are written and drawn."""
    found = rows(*given)
    assert len(found) == 1
    assert given[0]["protocol"] in markdown(found, 1)
    assert BEYOND.laid_out(found)[0][0]["setting"] == "phonemes"
    assert next(BEYOND.conclusions(found), "") == ""
    assert BEYOND.draw(found, evidence("beyond"), "png")["png"]


@pytest.mark.parametrize(("seeds", "said"), [((5, 5), " --seed 5"), ((5, 6), "")])
def test_results_stand_beside_the_rows(tmp_path, seeds, said):
    """results.md says how it was made: the replicates and, if it was one, the seed."""
    few = [one for one in MADE_UP if one["setting"] == "phonemes"]
    configs = [{"replicates": 12, "seed": seed} for seed in seeds]
    found = evidence("beyond", configs=configs)
    paths = {path.name: path for path in BEYOND.write(tmp_path, few, found)}
    page = paths["results.md"].read_text(encoding="utf-8")
    assert f"`curvote reproduce beyond --replicates 12{said}`" in page
    assert json.loads(paths["comparison.json"].read_text(encoding="utf-8")) == few


def test_each_setting_states_its_own_encoding() -> None:
    """A protocol that replaces `project` as a whole keeps that section's defaults."""
    config = {
        "project": {"basis": "bspline", "size": 4, "rescale": "standard"},
        "protocols": ["auto", {"name": "mrma", "project": {"basis": "identity"}}],
    }
    assert stated_settings(config) == {
        "auto": {"representation": "standard", "d": 4},
        "mrma": {"representation": "tanh", "d": None},
    }
