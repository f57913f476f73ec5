"""Codes: what they hold and refuse, their file, and true labels in their form."""

import hashlib
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from curvote.base.errors import UserError
from curvote.labels import Codes, encode
from curvote.systems.labels.codes.encoders import ENCODERS, build_encoder
from curvote.wire.strict_json import canonical_json

CLASSES = ["aa", "iy", "sh", "dcl", "ao"]
N = 60


def made(encoder: str, n: int = N, seed: int = 1) -> Codes:
    """Return codes of five classes."""
    rng = np.random.default_rng(seed)
    y = rng.choice(CLASSES, n)
    prior = rng.dirichlet(np.ones(5), n) if encoder == "rr_with_prior" else None
    return encode(y, CLASSES, 1.5, encoder, seed, prior=prior)


@pytest.fixture(params=ENCODERS)
def codes(request) -> Codes:
    """Codes by each encoder in turn."""
    return made(request.param)


def same(one: Codes, other: Codes) -> bool:
    """Say whether both hold the same."""
    priors = [
        it.prior if it.prior is None else it.prior.tolist() for it in (one, other)
    ]
    return (
        one.values.dtype == other.values.dtype
        and one.values.tolist() == other.values.tolist()
        and one.classes.tolist() == other.classes.tolist()
        and (one.epsilon, one.encoder, dict(one.params))
        == (other.epsilon, other.encoder, dict(other.params))
        and priors[0] == priors[1]
    )


def test_rows_decode_as_the_whole_does(codes):
    """A slice, a mask, places and one row; blocks together are the whole."""
    decoded, likely = codes.decode(), codes.likelihood()
    assert (len(codes), decoded.shape, likely.shape) == (N, (N, 5), (N, 5))
    assert (likely.max(axis=1) == 1).all()
    assert (likely > 0).all() or codes.encoder == "rr_with_prior"
    mask = np.arange(N) % 3 == 0
    for rows in (slice(5, 20), mask, np.array([7, 3, 3])):
        part = codes[rows]
        assert part.decode() == pytest.approx(decoded[rows])
        assert part.likelihood() == pytest.approx(likely[rows])
    assert codes[7].decode() == pytest.approx(decoded[[7]])
    assert codes[mask][2].decode() == pytest.approx(decoded[[6]])
    (block,) = list(codes.blocks())
    assert block[1].decode() == pytest.approx(decoded)
    assert codes.nbytes == codes.values.nbytes
    assert same(pickle.loads(pickle.dumps(codes)), codes)


def test_a_file_holds_all_of_it(codes, tmp_path):
    """What is read is what was written, with the prior where there is one."""
    codes.write(tmp_path / "codes.parquet")
    again = Codes.read(tmp_path / "codes.parquet")
    assert same(again, codes)
    assert again.decode() == pytest.approx(codes.decode())


@pytest.mark.parametrize("y", [[True, False, True], [3, 1, 3], [2.0, 5.0, 2.0]])
def test_a_file_keeps_the_kind_of_classes(y, tmp_path):
    """Truth values and numbers come back as such; so do no codes at all."""
    for codes in (encode(y, random_state=0), encode(y, random_state=0)[:0]):
        codes.write(tmp_path / "codes.parquet")
        again = Codes.read(str(tmp_path / "codes.parquet"))
        assert again.classes.tolist() == codes.classes.tolist()
        assert again.classes.dtype.kind == codes.classes.dtype.kind
        assert len(again) == len(codes)


def altered(path: Path, how: str) -> None:
    """Alter one thing in a file of codes."""
    table = pq.read_table(path)
    about = table.schema.metadata[b"curvote.codes"]
    if how == "a code":
        flat = table["code"].combine_chunks().flatten().to_numpy().copy()
        flat[3] ^= 32
        column = pa.FixedSizeListArray.from_arrays(pa.array(flat), 1)
        table = table.set_column(0, "code", column)
    if how == "order":
        table = table.take(list(range(N))[::-1])
    if how == "a row less":
        table = table.slice(0, N - 1)
    if how == "a column less":
        table = table.rename_columns(["codes"])
    told = {
        "epsilon": about.replace(b'"epsilon":1.5', b'"epsilon":1.6'),
        "a class": about.replace(b'"aa"', b'"ab"'),
        "no JSON": about[:-2],
        "no digest": about.replace(b"sha256", b"sha255"),
    }.get(how, about)
    pq.write_table(table.replace_schema_metadata({b"curvote.codes": told}), path)


@pytest.mark.parametrize(
    "how",
    [
        "a code",
        "order",
        "a row less",
        "a column less",
        "epsilon",
        "a class",
        "no JSON",
        "no digest",
    ],
)
def test_an_altered_file_is_refused(how, tmp_path):
    """Whatever was altered, by name of the file."""
    path = tmp_path / "codes.parquet"
    made("subset_selection").write(path)
    altered(path, how)
    with pytest.raises(UserError, match=r"codes\.parquet was altered"):
        Codes.read(path)


def test_no_file_of_codes(tmp_path):
    """A missing file, another kind of file and another table say what they are."""
    with pytest.raises(UserError, match="there is no file"):
        Codes.read(tmp_path / "none.parquet")
    (tmp_path / "text.parquet").write_text("no table")
    with pytest.raises(UserError, match="no Parquet file"):
        Codes.read(tmp_path / "text.parquet")
    pq.write_table(pa.table({"code": [1, 2]}), tmp_path / "other.parquet")
    with pytest.raises(UserError, match="no file of codes"):
        Codes.read(tmp_path / "other.parquet")
    with pytest.raises(UserError, match="cannot be written"):
        made("k_rr").write(tmp_path / "nowhere" / "codes.parquet")


def test_a_false_digest_does_not_make_codes(tmp_path):
    """A file that was signed anew is still judged by what its encoder can make."""
    path = tmp_path / "codes.parquet"
    codes = made("k_rr")
    about = {
        "format": 1,
        "encoder": "k_rr",
        "epsilon": 1.5,
        "classes": CLASSES,
        "params": {},
        "kinds": {"code": "<i8"},
        "shapes": {"code": [N]},
    }
    values = codes.values.copy()
    values[4] = 17
    digest = hashlib.sha256(canonical_json(about) + values.tobytes()).hexdigest()
    told = canonical_json({**about, "sha256": digest})
    table = pa.table({"code": values})
    pq.write_table(table.replace_schema_metadata({b"curvote.codes": told}), path)
    with pytest.raises(UserError, match=r"1 of 60 codes.*k_rr.*row 4"):
        Codes.read(path)


def test_impossible_codes_are_refused(codes):
    """Of other K, of another encoder, or of no encoder: what is wrong is named."""
    facts = codes.epsilon, codes.encoder, codes.params, codes.prior
    wider = [*CLASSES, *(f"more {i}" for i in range(20))]
    given = dict(codes.params)
    if codes.encoder not in {"k_rr", "hadamard", "rr_with_prior"}:
        with pytest.raises(UserError, match=rf"{codes.encoder} at epsilon 1.5 for 25"):
            Codes(codes.values, wider, 1.5, codes.encoder, given)
    with pytest.raises(UserError, match="cannot be made by"):
        Codes(codes.values.astype(float) + 0.5, CLASSES, *facts)
    with pytest.raises(UserError, match="one row a client"):
        Codes(codes.values.reshape(N, -1, 1), CLASSES, *facts)
    with pytest.raises(UserError, match="give two or more, all different"):
        Codes(codes.values, ["a"] * 5, *facts)
    with pytest.raises(UserError, match="Did you mean"):
        Codes(codes.values, CLASSES, 1.5, "k_r")


@pytest.mark.parametrize("epsilon", [0, np.nan, -1, np.inf])
def test_an_epsilon_that_is_no_budget(epsilon):
    """It is a UserError that names it."""
    with pytest.raises(UserError, match="epsilon is"):
        Codes(np.zeros(3, dtype=int), CLASSES, epsilon, "k_rr")


def test_sets_of_another_size_are_impossible():
    """Omega is part of what a code must obey."""
    codes = made("subset_selection")
    assert codes.params == {"omega": build_encoder("subset_selection", 5, 1.5).omega}
    with pytest.raises(UserError, match="subset_selection"):
        Codes(codes.values, CLASSES, 1.5, "subset_selection", {"omega": 3})


def test_facts_name_the_law(codes):
    """What a release says: the mechanism's own numbers."""
    law = codes.mechanism
    if codes.encoder == "subset_selection":
        assert codes.facts["omega"] == law.omega
    if codes.encoder == "alibi":
        assert codes.facts == {"scale": pytest.approx(2 / 1.5)}
    if hasattr(law, "p"):
        assert codes.facts["p"] == float(law.p)
        assert codes.facts["q"] == float(law.q)


def test_true_labels_in_the_form_of_codes(tmp_path):
    """For a study's clean rows: the labels themselves, never written."""
    codes = Codes.plain(["b", "a", "b", "c"])
    assert (codes.encoder, codes.epsilon) == ("none", np.inf)
    assert codes.decode().tolist() == np.eye(3)[[1, 0, 1, 2]].tolist()
    assert codes.likelihood().tolist() == codes.decode().tolist()
    assert codes[1:].decode().tolist() == np.eye(3)[[0, 1, 2]].tolist()
    assert codes.mechanism.unbiased
    assert codes.facts == {}
    with pytest.raises(UserError, match="never written"):
        codes.write(tmp_path / "labels.parquet")
    assert not list(tmp_path.iterdir())


def test_true_labels_are_no_encoder():
    """No name reaches them: not encode, not the mechanisms."""
    with pytest.raises(UserError, match="encoder is 'none'"):
        encode(["a", "b"], encoder="none")
    with pytest.raises(UserError, match="'none'"):
        build_encoder("none", 3, 1.0)
