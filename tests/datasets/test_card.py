"""The data card states facts and shares of a published data set, and draws no one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import lookup, raw_files, registry
from curvote.data.public import phonemes
from curvote.report import card
from tests.real_files import needs_mirror

PUBLISHED = sorted({source.dataset for source in raw_files.catalogue().values()})
PARAMETERS = phonemes.Parameters()
BOUNDS: dict[str, Any] = {"lower": 0.0, "upper": 10.0, "why": "a scale of ten"}


def columns(n: int = 60, p: int = 3) -> dict[str, Any]:
    """Return clients of both classes whose values lie in [0, 10]."""
    values = np.random.default_rng(5).uniform(0, 10, size=(n, p))
    ids = np.arange(n)
    return {"client_id": ids, "label": ids % 2, "group": ids, "curve": values}


def facts(p: int = 3, **more: Any) -> dict[str, Any]:
    """Return the public facts that go with ``columns``."""
    return {
        "title": "Invented",
        "grid": list(range(p)),
        "domain": [0, p - 1],
        "unit": "feature",
        "classes": ["well", "ill"],
        "rows": 60,
        "counts": {"well": 30, "ill": 30},
        "simulated": False,
        "notes": ["A note."],
        **more,
    }


def vectors(p: int = 3, **more: Any) -> dict[str, Any]:
    """Return the facts of ``p`` features, F0 and so on, all with bounds [0, 10]."""
    features = [{"name": f"F{j}", "unit": "kg", "centre": 5} | BOUNDS for j in range(p)]
    return facts(p, features=features, **more)


def make(stated: dict[str, Any], given: dict[str, Any], files: Any = None) -> card.Card:
    """Return the card under the name of a published data set."""
    return card.make_card("phonemes", PARAMETERS, stated, given, files=files)


def test_shares_outside_the_bounds_are_exact() -> None:
    """A value on a bound is inside; each feature counts its own."""
    given = columns()
    given["curve"][:6, 1] = -0.01
    given["curve"][6:9, 1] = 10.5
    given["curve"][0, 2] = 10.0
    made = make(vectors(), given)
    assert [each.bounds.clipped for each in made.features] == [0, 9 / 60, 0]
    curves = make(facts(bounds=BOUNDS), given)
    assert curves.bounds
    assert curves.bounds.clipped == 9 / 180
    assert make(facts(), given).bounds is None


def test_missing_and_repeated_rows_are_those_of_the_facts() -> None:
    """The card adds nothing to what the data set itself states."""
    missing = {"policy": "centre", "counts": {"F1": 7}}
    repeated = {"policy": "keep", "rows": 60, "distinct": 50}
    made = make(vectors(missing=missing, duplicates=repeated), columns())
    assert [each.missing for each in made.features] == [0, 7, 0]
    assert (made.missing, made.duplicates) == (missing, repeated)
    assert (made.rows, made.clients, made.points) == (60, 60, 3)


def test_each_server_has_its_records_and_classes() -> None:
    """Server c of the facts is code c of the group; one may lack a class, or all."""
    given = columns()
    given["group"] = np.repeat([0, 2], [40, 20])
    given["label"][40:] = 1
    sizes = {"here": 40, "nobody": 0, "there": 20}
    made = make(facts(servers=sizes), given)
    assert {each.name: each.clients for each in made.servers} == sizes
    balance = [[*each.counts.items()] for each in made.servers]
    assert balance[0] == [("well", 20), ("ill", 20)]
    assert balance[1:] == [[("well", 0), ("ill", 0)], [("well", 0), ("ill", 20)]]
    assert make(facts(), given).servers == ()


def test_five_classes_are_drawn_apart(tmp_path: Path) -> None:
    """Each has a colour of its own, in histograms and in curves."""
    names = [*"abcde"]
    given = columns() | {"label": np.arange(60) % 5}
    for stated in (vectors(classes=names), facts(classes=names, bounds=BOUNDS)):
        stated["counts"] = dict.fromkeys(names, 12)
        figure = card.card_figure(make(stated, given), given)
        entries = figure.legends[0].get_texts()
        assert [each.get_text() for each in entries[:5]] == [f"{n} (12)" for n in names]
        colours = [handle.get_facecolor() for handle in figure.legends[0].get_patches()]
        assert len({*colours}) == 5


def test_a_hundred_classes_are_counted_apart_and_drawn_as_one(tmp_path: Path) -> None:
    """A legend of a hundred names would leave no room for the drawing."""
    names = [f"class {k}" for k in range(100)]
    given = columns(300) | {"label": np.arange(300) % 100}
    for stated in (vectors(classes=names), facts(classes=names, bounds=BOUNDS)):
        stated["counts"] = dict.fromkeys(names, 3)
        made = make(stated, given)
        assert (len(made.classes), sum(made.counts.values())) == (100, 300)
        first, *_ = card.card_figure(made, given).legends[0].get_texts()
        assert first.get_text() == "all 100 classes (300)"
        assert card.draw_card(made, given, tmp_path)


def test_it_says_whose_file_it_is_and_which_edition_is_here() -> None:
    """Licence, citation and address are the catalogue's; the digest is the file's."""
    (plain,) = make(facts(), columns()).files
    known = raw_files.find("phonemes")
    assert (plain.licence, plain.citation) == (known.licence, known.citation)
    assert (plain.url, plain.sha256) == (known.url, None)
    context = {"phonemes": raw_files.RawFile(Path("x"), "ab" * 32, "by post")}
    (found,) = make(facts(), columns(), context).files
    assert (found.sha256, found.origin) == ("ab" * 32, "by post")


def test_it_is_plain_json_of_few_numbers() -> None:
    """The card holds counts and shares: no record, no client id and no path."""
    many = columns(60, 40)
    context = {
        "phonemes": raw_files.RawFile(Path("/secret/place"), "ab" * 32, "by post")
    }
    text = json.dumps(make(vectors(40), many, context).to_json())
    assert json.loads(text)["points"] == 40
    assert "secret" not in text
    assert not any(f"{value:.6f}"[:-1] in text for value in many["curve"].ravel())


@pytest.mark.parametrize("name", sorted(set(registry.DATASETS) - set(PUBLISHED)))
def test_records_that_are_not_published_get_no_card(name: str) -> None:
    """What clients hold themselves must not be described by its distribution."""
    with pytest.raises(UserError, match="no published file"):
        card.make_card(name, None, facts(), columns())


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-3.0, 7.5), (0.0, 300.0)])
@pytest.mark.parametrize("whole", [True, False])
def test_bins_meet_the_bounds_and_lose_no_value(bounds, whole):
    """Each value counts once; what is outside counts beyond the bound, on its side."""
    lower, upper = bounds
    values = np.random.default_rng(3).normal((lower + upper) / 2, upper - lower, 500)
    values = values.round() if whole else values
    values[:4] = *bounds, *bounds
    at = card.bin_edges(card.PublicBounds(lower, upper, "", 0.0), values)
    counts, _ = np.histogram(np.clip(values, at[0], at[-1]), at)
    assert counts.sum() == 500
    assert (np.diff(at) > 0).all()
    below = counts[at[1:] <= lower + 1e-9].sum()
    above = counts[at[:-1] >= upper].sum()
    assert below == (values < lower).sum()
    assert above == (values > upper).sum()


@pytest.mark.parametrize("stated", [vectors(), facts(bounds=BOUNDS), vectors(40)])
def test_a_figure_is_drawn_alike_twice(stated: dict[str, Any], tmp_path: Path) -> None:
    """PNG and SVG stand in the folder under the data set's name, with no date."""
    given = columns(60, len(stated["grid"]))
    made = make(stated, given)
    first = card.draw_card(made, given, tmp_path / "new")
    assert [path.name for path in first] == ["phonemes.png", "phonemes.svg"]
    before = [path.read_bytes() for path in first]
    assert [
        p.read_bytes() for p in card.draw_card(made, given, tmp_path / "new")
    ] == before
    assert b"<dc:date" not in before[1]
    assert {path.name for path in (tmp_path / "new").iterdir()} == {
        "phonemes.png",
        "phonemes.svg",
    }


def test_each_feature_has_a_histogram_against_its_bounds() -> None:
    """A panel names its feature, shows both bounds and the share outside."""
    given = columns()
    given["curve"][:6, 1] = 11
    figure = card.card_figure(make(vectors(), given), given)
    titles = [ax.get_title() for ax in figure.axes]
    assert titles == ["F0", "F1: 10.0 % beyond", "F2"]
    for ax in figure.axes:
        assert [line.get_xdata()[0] for line in ax.lines] == [0, 10]  # type: ignore[index]


@pytest.mark.parametrize("stated", [facts(50, bounds=BOUNDS), vectors(50)])
def test_no_single_curve_is_drawn(stated: dict[str, Any]) -> None:
    """Two means and two bounds, however many clients there are."""
    given = columns(60, 50)
    (ax,) = card.card_figure(make(stated, given), given).axes
    means, bounds = ax.lines[:2], ax.lines[2:]
    for k, line in enumerate(means):
        mine = given["curve"][given["label"] == k]
        drawn = np.asarray(line.get_ydata(), dtype=float)
        np.testing.assert_allclose(drawn, mine.mean(axis=0))
    assert [line.get_ydata()[0] for line in bounds] == [0, 10]  # type: ignore[index]


@pytest.mark.parametrize("stated", [vectors(), facts(bounds=BOUNDS)])
def test_a_class_without_rows_is_no_fault(stated, tmp_path):
    """Some hospitals have hardly any healthy patient."""
    given = columns()
    given["label"][:] = 1
    assert card.draw_card(make(stated, given), given, tmp_path)


@needs_mirror
@pytest.mark.parametrize("name", sorted(set(PUBLISHED) & set(registry.DATASETS)))
def test_every_published_data_set_has_a_card(name: str, tmp_path: Path) -> None:
    """Its classes count all its clients, and its figure can be drawn."""
    module = lookup.find_dataset(name)
    parameters = module.Parameters()
    found = {
        each: raw_files.locate(tmp_path, each, download=False)
        for each in module.files(parameters)
    }
    if not all(found.values()):
        pytest.skip(f"not here: {[each for each, file in found.items() if not file]}")
    paths = {each: file.path for each, file in found.items() if file}
    given = module.clients(parameters, paths)
    made = card.make_card(name, parameters, module.facts(parameters, paths), given)
    assert made.clients == sum(made.counts.values()) == len(given["label"])
    assert all(0 <= each.bounds.clipped < 1 for each in made.features)
    assert json.loads(json.dumps(made.to_json()))["name"] == name
    assert b"</svg>" in card.render_card(made, given, ["svg"])["svg"]
