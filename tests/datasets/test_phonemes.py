"""The phonemes: which rows become clients, and what may be asked for."""

import json
from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public import phonemes
from curvote.data.raw_files import read
from curvote.data.simulation import simulated
from tests.phoneme_file import TEXT, put
from tests.real_files import MIRROR, needs_mirror


def test_phonemes_become_a_table_of_clients(root: Path) -> None:
    """Rows in the file's order; 1 is the positive class; speakers by appearance."""
    table = phonemes.load_curves(put(root, TEXT))
    assert table.curves.shape == (8, 256)
    assert table.labels.tolist() == [0, 1] * 4
    assert table.groups.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert table.classes == ("iy", "sh")
    facts = phonemes.facts(phonemes.Parameters(), {"phonemes": put(root, TEXT)})
    assert len(facts["grid"]) == 256
    assert [facts["grid"][0], facts["grid"][-1]] == facts["domain"]
    first = TEXT.split("\n")[4].split(",")
    assert table.curves[0].tolist() == [float(value) for value in first[1:257]]
    assert "4 speakers have up to 2 of these curves" in table.notes[0]


ALL = ["aa", "ao", "dcl", "iy", "sh"]


@pytest.mark.parametrize(
    ("said", "names", "size"),
    [
        ({"classes": ["sh", "aa", "iy"]}, ["sh", "aa", "iy"], 2730),
        ({"classes": ALL}, ALL, 4509),
        ({"classes": "all"}, ALL, 4509),
        ({"positive": "aa", "negative": "dcl"}, ["dcl", "aa"], 1452),
        ({"positive": "aa", "negative": "rest"}, ["rest", "aa"], 4509),
    ],
)
def test_a_label_is_the_place_in_the_list(root, said, names, size):
    """Two phonemes or more in any order; facts are JSON and tell the same as clients.

    An id is the publisher's row name, whatever phonemes are chosen; there is one row a
    client and no raw speaker name. The published size is known without the file.
    """
    paths = {"phonemes": put(root, TEXT)}
    chosen = phonemes.Parameters.model_validate(said | {"groups": "speaker"})
    whole = phonemes.load_curves(paths["phonemes"], ALL)
    known = dict(zip(whole.ids.tolist(), whole.labels.tolist(), strict=True))
    columns = phonemes.clients(chosen, paths)
    assert set(columns) == {"client_id", "label", "group", "curve"}
    spelled = [names[label] for label in columns["label"]]
    true = [ALL[known[i]] for i in columns["client_id"].tolist()]
    assert spelled == [name if name in names else "rest" for name in true]
    facts = json.loads(json.dumps(phonemes.facts(chosen, paths)))
    assert facts["classes"] == list(phonemes.classes(chosen)) == names
    assert facts["counts"] == {name: 16 if name == "rest" else 4 for name in names}
    assert facts["rows"] == len(spelled) == len(columns["curve"])
    assert facts["simulated"] is False
    assert phonemes.size(chosen) == size


def test_the_publishers_test_speakers_are_a_column(root: Path) -> None:
    """A speaker stands in one part, by the name's first word."""
    content = TEXT.replace("train.dr1.s2", "test.dr1.s2")
    paths = {"phonemes": put(root, content)}
    chosen = phonemes.Parameters(split="published", groups="speaker")
    columns = phonemes.clients(chosen, paths)
    assert columns["part"].tolist() == [0, 0, 0, 0, 1, 1, 0, 0]
    assert columns["part"].dtype == np.int64
    assert phonemes.facts(chosen, paths)["parts"] == {"train": 6, "test": 2}
    plain = phonemes.Parameters(groups="speaker")
    assert "part" not in phonemes.clients(plain, paths)
    assert "parts" not in phonemes.facts(plain, paths)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["iy", "shh"], "phoneme is 'shh'. Did you mean 'sh'"),
        (["xx", "sh"], "phoneme is 'xx'. Known: aa, ao"),
        (["iy", "iy"], "all different"),
        (["iy"], "two or more"),
    ],
)
def test_an_unknown_phoneme_is_refused(root, names, message):
    """The message suggests what may have been meant."""
    with pytest.raises(UserError, match=message):
        phonemes.load_curves(put(root, TEXT), names)


def test_the_number_of_clients_is_known_without_a_file() -> None:
    """A plan can refuse more clients than there are before it loads anything."""
    assert phonemes.size(phonemes.Parameters()) == 872 + 1163
    assert phonemes.size(phonemes.Parameters(positive="aa", negative="ao")) == 1717
    assert phonemes.size(phonemes.Parameters(classes=("sh", "aa", "ao"))) == 1717 + 872
    assert simulated.CURVES.size(simulated.CURVES.Parameters()) is None


@needs_mirror
def test_the_real_phonemes_are_as_published(root, monkeypatch):
    """There are 872 curves of sh and 1163 of iy; 437 speakers have up to 6."""
    monkeypatch.setenv(raw_files.MIRROR, str(MIRROR))
    (root / "data" / "sources.toml").unlink()
    found = raw_files.locate(root, "phonemes")
    assert found
    assert "accepted" not in found.origin
    published = raw_files.find("phonemes")
    phonemes.check(read(found.path), published)
    table = phonemes.load_curves(found.path)
    assert np.bincount(table.labels).tolist() == [1163, 872]
    assert np.bincount(table.groups).shape == (437,)
    assert np.bincount(table.groups).max() == 6
    every = phonemes.load_curves(found.path, phonemes.PHONEMES)
    tested = every.tested == 1
    assert np.bincount(every.labels[tested]).tolist() == [176, 263, 195, 311, 224]
    assert np.bincount(every.labels[~tested]).tolist() == [519, 759, 562, 852, 648]
    assert not {*every.groups[tested].tolist()} & {*every.groups[~tested].tolist()}
    values = phonemes.parse(read(found.path)).filter(like="x.").to_numpy()
    assert (values.min(), values.max()) == (-8.17219, 26.91038)
