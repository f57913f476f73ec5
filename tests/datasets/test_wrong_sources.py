"""What no source can say: settings that are refused by name, before a file is read."""

import re
from math import inf, nan
from typing import Any

import pytest
from pydantic import ValidationError

from curvote.data import lookup

# Of each data set what is said, and a pattern of the message where that does not name
# the first key.
WRONG: dict[str, list[Any]] = {
    # Two classes or more, a positive spread, known shares, nothing else.
    "circle": [
        *({"n_classes": k} for k in (1, 2.5)),
        *({"sigma": sigma} for sigma in (0, "1/K", nan)),
        {"shares": "some"},
        {"n": 5},
    ],
    # Only variant, duplicates and missing may be set, to what there is.
    "diabetes": [{"variant": "Pima"}, {"missing": "mean"}, {"name": "pima"}, {"Id": 1}],
    # At least one arrival, a turn within half a circle, no unknown key.
    "drifting": [
        {"periods": 0},
        *({"turn": turn} for turn in (270, nan)),
        {"since": -1},
        {"a": 1},
    ],
    # Only encoding, duplicates and missing may be set, to what there is.
    "employee": [{"encoding": "hot"}, {"missing": 0}, {"variant": 1}],
    "heart": [
        *({"hospitals": x} for x in ([], ["va", "va"], ["budapest"])),
        {"rule": "some"},
        {"features": "nine"},
        {"groups": "speaker"},
    ],
    # Two different digits and a known part, nothing else.
    "mnist": [{"positive": 3}, {"positive": 10}, {"part": "all"}],
    # Rules that no hour, day or week can fulfil, and unknown keys.
    "nhanes": [{"valid_minutes": 0}, {"valid_hours": 25}, {"days": 8}, {"sex": "male"}],
    # Unknown sexes and keys, and ages that the table does not have.
    "nhanes-2003": [
        {"sex": "women"},
        {"minimum_age": 29},
        {"age": 40},
        {"target": "hdl"},
    ],
    # Unknown or equal classes and unknown keys never reach a run.
    "phonemes": [
        {"positive": "shh"},
        {"negative": "sh"},
        ({"positive": "iy"}, r"\nnegative\n"),
        {"classes": ["sh"]},
        {"classes": ["sh", "iy", "sh"]},
        {"classes": ["sh", "rest"]},
        ({"classes": ["sh", "iy"], "positive": "sh"}, "give classes, or"),
        ({"classes": "all", "negative": "iy"}, "give classes, or"),
        {"classes": "any"},
        {"split": "speaker"},
        {"n": 1},
    ],
    # Sizes and the exponent must make sense together.
    "posterior_drift": [
        ({}, "give n"),
        ({"n": 5, "total": 5}, "give n"),
        ({"total": 3, "m": 3}, "leave none"),
        ({"n": 0}, "greater than or equal to 1"),
        ({"n": 5, "m": -1}, "greater than or equal to 0"),
        ({"n": 5, "gamma": 0}, "greater than 0"),
        ({"n": 5, "gamma": inf}, "finite"),
        ({"n": 5, "gamma": nan}, "finite|greater than 0"),
    ],
    # One message each, about what was meant: a word or a list.
    "simulated": [
        ({"slope": [1.0] * 51}, "at most 50 items"),
        ({"slope": [1, inf]}, "finite number"),
        ({"slope": [nan]}, "finite number"),
        ({"slope": [1e300]}, "less than or equal to 1000000"),
        ({"slope": "decayed"}, "should be 'decaying'"),
        ({"slope": 8}, "valid tuple"),
        *(({"intercept": number}, "finite number") for number in (inf, nan)),
    ],
    # Unknown keys and policies never reach a run, of any table.
    "stroke": [
        {"missing": "mean"},
        *({"duplicates": policy} for policy in ("drop", "mean")),
        {"groups": "id"},
        {"typo": "mean"},
    ],
    # One of two ways says the classes of curves that are elsewhere.
    "remote": [
        ({"points": 5, "classes": "all"}, "is not public"),
        ({"points": 5, "classes": ["a"]}, "two or more"),
        ({"points": 5, "negative": "a"}, "name the classes, or negative and positive"),
        ({"points": 5, "negative": "a", "positive": "a"}, "must differ"),
        ({"points": 5, "classes": ["a", "b"], "negative": "a"}, "give classes, or"),
        ({"points": 5}, "name the classes"),
    ],
}


@pytest.mark.parametrize(
    ("name", "row"), [(name, row) for name, rows in WRONG.items() for row in rows]
)
def test_a_wrong_source_is_refused(name: str, row: Any) -> None:
    """At the key that is wrong; nothing that is unknown is accepted."""
    said, pattern = row if isinstance(row, tuple) else (row, rf"\n{min(row)}\b")
    with pytest.raises(ValidationError) as error:
        lookup.find_dataset(name).Parameters.model_validate({"name": name} | said)
    assert error.value.error_count() == 1 or name != "simulated"
    assert re.search(pattern, str(error.value))
