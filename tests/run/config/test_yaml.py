"""YAML 1.2: what is a text and what a number, lines of keys, merged keys, anchors."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml.error import YAMLError

from curvote.base.errors import UserError
from curvote.pipeline.config import yaml_document
from curvote.pipeline.config.yaml_document import (
    LineIndex,
    as_yaml,
    load_document,
    parse_value,
)

SHARED = """\
a: &usual
  size: 4
  bounds: [0, 1]
b:
  <<: *usual
  size: 5
c: {<<: [{size: 6}, *usual], d: *usual}
"""
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
WORDS = st.text("abeyno<1.~-+:#&*!%@|é\"' \n", max_size=6)
VALUES = st.recursive(
    SCALARS | WORDS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("1e-9", 1e-9),
        ("1.5e3", 1500.0),
        (".5", 0.5),
        ("-.inf", -float("inf")),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2026-01-31", "2026-01-31"),
        ("~", None),
        ("", None),
        ("'yes'", "yes"),
        ("!!str 5", "5"),
        ("!!float 1.0", 1.0),
    ],
)
def test_plain_words_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    """No Norway problem, no sexagesimal, no octal by a zero, no dates."""
    assert repr(parse_value(text)) == repr(value)


@given(VALUES)
def test_what_is_written_is_read_again(values: Any) -> None:
    """Every value of JSON, with its type."""
    assert repr(parse_value(as_yaml(values))) == repr(values)


def test_merged_keys_and_anchors_have_values_and_lines(tmp_path: Path) -> None:
    """Own keys count before merged ones; a merged key's line is where it stands."""
    path = tmp_path / "shared.yaml"
    path.write_text(SHARED)
    values, lines = load_document(path, "shared.yaml")
    usual = {"size": 4, "bounds": [0, 1]}
    assert values["b"] == {"size": 5, "bounds": [0, 1]}
    assert values["c"] == {"size": 6, "bounds": [0, 1], "d": usual}
    assert values["c"]["d"] is not values["a"]  # --set changes one of them
    assert lines.line(("b", "size")) == 6
    assert lines.line(("b", "bounds", 1)) == 3
    assert lines.line(("b", "absent", "deeper")) == 4
    assert ("b", "bounds") in lines
    assert ("b", "absent") not in lines
    assert LineIndex(None).line(("a",)) is None


# Nine lists of nine, each of them the one before: 9 ** 8 values in 300 characters.
BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: &x [*x]\n", "p.yaml:1: an anchor (&name) holds itself"),
        ("a: &x {<<: *x}\n", "p.yaml:1: an anchor (&name) holds itself"),
        (
            "[" * 900 + "]" * 900,
            "p.yaml: lists and mappings stand in one another too often",
        ),
        (BOMB, "anchors make over 4,096 values; name fewer."),
        ("a: !mine 3\n", "p.yaml:1: '3' is no !mine; leave the tag out."),
        ("a: !!int x\n", "p.yaml:1: 'x' is no tag:yaml.org,2002:int; leave"),
        ("a: !mine {}\n", "p.yaml:1: the tag !mine is not known here; leave it out."),
        ("a:\n  {b: 1}: 2\n", "p.yaml:2: a key is a word or a number"),
        ("a: {{ b }}\n", "p.yaml:1: a key is a word or a number"),
        (
            "a: 1\n---\nb: 2\n",
            "p.yaml:2: this is no YAML, column 1: but found another",
        ),
        ("a: \x01\n", "p.yaml:1: a character stands here that is no text; delete it."),
    ],
)
def test_what_no_pipeline_needs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    """Rings and towers of anchors, tags, keys that are no words, further documents."""
    monkeypatch.setattr(yaml_document, "_MAX_VALUES", 2**12)  # 2**20 by itself
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        load_document(tmp_path / "p.yaml", "p.yaml")
    assert said in str(error.value)


def test_every_key_that_stands_twice_is_named(tmp_path: Path) -> None:
    """All in one pass, each with the line of the second."""
    (tmp_path / "p.yaml").write_text("a: 1\nb: {c: 1, c: 2}\na: 2\n")
    with pytest.raises(UserError) as error:
        load_document(tmp_path / "p.yaml", "p.yaml")
    assert str(error.value).split("\n") == [
        "p.yaml:2: c stands here a second time; keep one.",
        "p.yaml:3: a stands here a second time; keep one.",
    ]


def test_a_text_is_parsed_once_and_another_one_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command asks many times for the same file; an edit is always seen."""
    path, texts, compose = tmp_path / "p.yaml", [], yaml_document._compose

    def counted(text: str) -> Any:
        texts.append(text)
        return compose(text)

    monkeypatch.setattr(yaml_document, "_compose", counted)
    path.write_text("once: 1\n")
    assert load_document(path, "p")[0] == load_document(path, "p")[0] == {"once": 1}
    path.write_text("once: 2\n")
    assert load_document(path, "p")[0] == {"once": 2}
    assert texts == ["once: 1\n", "once: 2\n"]


def test_both_parsers_read_the_shipped_files_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one in C is quick; the one in Python reads what is right beyond it."""
    assert parse_value("{a:1, b: 2}") == {"a:1": None, "b": 2}
    root = Path(__file__).resolve().parents[3]
    paths = [root / "pipelines.yaml", *root.glob("curvote/papers/*/pipelines.yaml")]
    assert len(paths) > 1
    quick = [parse_value(path.read_text()) for path in paths]

    def failing(_: str) -> None:
        raise YAMLError

    monkeypatch.setattr(yaml_document, "_Composer", failing)
    assert [repr(parse_value(path.read_text())) for path in paths] == list(
        map(repr, quick)
    )
