"""Private words: columns that are secret as well, in one code with the label.

Each private column has a few public words: its categories, or bins between its public
bounds. One word of each column and the label make one of K W classes, so whatever is
done for classes is done for these. The class at label y and word w is number y W + w.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise, product
from math import ceil, prod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from curvote.base import validate
from curvote.base.errors import UserError
from curvote.base.validate import FloatArray
from curvote.wire.task import BESIDE, LONGEST_WORD, MOST_CLASSES

Words = Mapping[str, Sequence[str]]  # of each private column, by its name
Private = Sequence[Mapping[str, Any]]  # columns, as `private_columns` makes them
Places = NDArray[np.int64]


def private_columns(
    source: Mapping[str, Any], public: Sequence[str] | None, bins: int
) -> list[dict[str, Any]]:
    """Return the private columns of a source's metadata as plain JSON values.

    All but the ``public`` ones, or those that the source itself keeps elsewhere. ``at``
    are the places of a column's numbers: one for each category, or a single one, which
    ``edges`` divide. Of a number there are ``bins`` words between the public bounds, of
    whole numbers no more than there are; what lies beyond counts as the nearest.
    UserError: columns that are none, all of them, or too many classes.
    """
    if public is None and not source.get("private"):
        return []
    groups: dict[str, list[int]] = {}
    features: Sequence[Mapping[str, Any]] = source.get("features") or ()
    for at, feature in enumerate(features):
        groups.setdefault(feature["name"].partition(" = ")[0], []).append(at)
    where = ("public", "columns")
    for name in public or ():
        try:
            validate.one_of(groups, column=name)
        except UserError as error:
            raise UserError(str(error), where=where) from None
    listed = source.get("private") or {*groups} - {*(public or ())}
    names = sorted(listed)  # as JSON has them
    if not names:
        raise UserError("every column is public: leave it out.", where=where)
    columns = [_private_column(name, groups[name], features, bins) for name in names]
    parts = [[*map(str, source["classes"])], *words_of(columns).values()]
    n_classes = prod(map(len, parts))
    longest = sum(len(BESIDE) + max(map(len, part)) for part in parts) - len(BESIDE)
    if n_classes > MOST_CLASSES or longest > LONGEST_WORD:
        raise UserError(
            f"label and private columns ({', '.join(names)}) make {n_classes} classes"
            f" of up to {longest} characters; at most {MOST_CLASSES} of {LONGEST_WORD}"
            " can be told apart: take fewer bins, or make more columns public.",
            where=where,
        )
    return columns


def _private_column(
    name: str, at: list[int], features: Sequence[Mapping[str, Any]], bins: int
) -> dict[str, Any]:
    feature = features[at[0]]
    if feature["name"] != name:
        words = [features[place]["name"].removeprefix(f"{name} = ") for place in at]
        return {"name": name, "words": words, "at": at, "edges": []}
    texts, is_whole = feature.get("categories", ()), feature.get("integral", False)
    low, high = feature["lower"], feature["upper"]
    if texts or is_whole:
        bins = len(texts) or min(bins, int(high - low) + 1)
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, bins + 1).tolist()
    words = list(texts)
    for begin, end in () if texts else pairwise(edges):
        first, last = (ceil(begin), ceil(end) - 1) if is_whole else (begin, end)
        words.append(f"{first:.4g}" + f" to {last:.4g}" * (first < last))
    return {"name": name, "words": words, "at": at, "edges": edges[1:-1]}


def words_of(private: Private) -> dict[str, list[str]]:
    """Return the words of each private column."""
    return {column["name"]: column["words"] for column in private}


def count_words(private: Private) -> int:
    """Return W, the number of words of all columns together; 1 without any."""
    return prod(len(column["words"]) for column in private)


def joint_classes(labels: Iterable[str], words: Words) -> list[str]:
    """Return the K W classes of labels and words, in order."""
    return [BESIDE.join(map(str, row)) for row in product(labels, *words.values())]


def label_classes(joint: Sequence[str], words: Words) -> list[str]:
    """Return the K labels of joint classes; a ValueError if they are not joint."""
    first = "".join(BESIDE + column[0] for column in words.values())
    n_words = prod(map(len, words.values()))
    labels = [str(name).removesuffix(first) for name in joint[::n_words]]
    # The number first: else somebody's task may ask for a list beyond the memory.
    if len(joint) % n_words or joint_classes(labels, words) != [*map(str, joint)]:
        raise ValueError("classes must be each label with each of the words, in order")
    return labels


def word_places(private: Private, values: FloatArray) -> Places:
    """Return the place of each record's word (n,) of its numbers (n, all).

    It is -1 where some column has none: a number that is missing (NaN), or a text that
    is none of its categories.
    """
    missing = np.zeros(len(values), dtype=bool)
    for column in private:
        numbers = values[:, column["at"]]
        missing |= np.isnan(numbers).any(axis=1)
        if len(column["at"]) > 1:
            missing |= ~(numbers.max(axis=1) >= 1)
    zeros = np.zeros(len(values), dtype=np.int64)
    return np.where(missing, -1, joint_places(private, zeros, values))


def joint_places(private: Private, labels: Places, values: FloatArray) -> Places:
    """Return the joint class of each owner (n,), by place of label and numbers.

    A missing text counts as the first of its column.
    """
    places = labels.astype(np.int64)
    for column in private:
        numbers = values[:, column["at"]]
        word = numbers.argmax(axis=1)
        if len(column["at"]) == 1:
            word = np.searchsorted(column["edges"], numbers[:, 0], side="right")
        places = places * len(column["words"]) + word
    return places


def public_places(private: Private, width: int) -> list[int]:
    """Return the places of the public numbers of a record."""
    private_places = {place for column in private for place in column["at"]}
    return [place for place in range(width) if place not in private_places]


def label_chances(joint: FloatArray, n_words: int) -> FloatArray:
    """Return P(label | record, word), (n, W + 1, K), of chances of joint classes.

    The last is that of a record whose word is missing: P(label | record). What is next
    to nothing under every label is shared out as that.
    """
    by_word = joint.reshape(len(joint), -1, n_words).swapaxes(1, 2)
    total = by_word.sum(axis=1, keepdims=True)
    chances = np.concatenate([by_word + _LEAST * total, total], axis=1)
    return np.asarray(chances / chances.sum(axis=2, keepdims=True))


_LEAST: Final = 1e-9
