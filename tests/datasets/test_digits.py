"""The promises of the digit images: formats, labels, bounds, ids, refusals."""

import gzip
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from curvote.base.errors import UserError
from curvote.data import raw_files
from curvote.data.public import images
from curvote.data.public.images import MNIST, ZIP
from tests.real_files import needs_mirror, real

RNG = np.random.default_rng(1)
LABELS = np.array([3, 8, 1, 8, 3, 3, 0, 8])
PIXELS = RNG.integers(0, 256, size=(8, 784), dtype=np.uint8)
GREYS = RNG.uniform(-1, 1, size=(8, 256)).round(4)


def idx_images(pixels: np.ndarray = PIXELS) -> bytes:
    """Return an idx file of images."""
    return struct.pack(">4I", 2051, len(pixels), 28, 28) + pixels.tobytes()


def idx_labels(labels: np.ndarray = LABELS) -> bytes:
    """Return an idx file of labels."""
    return struct.pack(">2I", 2049, len(labels)) + labels.astype(np.uint8).tobytes()


def zip_text(labels: np.ndarray = LABELS, greys: np.ndarray = GREYS) -> bytes:
    """Return a zip file's text; as the publisher's, a line ends in a blank."""
    lines = [
        " ".join(f"{value:.4f}" for value in (label, *grey)) + " "
        for label, grey in zip(labels, greys, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def mnist_paths(folder: Path, train: int = 8) -> dict[str, Path]:
    """Write an MNIST of 8 labels in each part and ``train`` training images."""
    contents = {
        "mnist-train-images": idx_images(PIXELS[:train]),
        "mnist-train-labels": idx_labels(),
        "mnist-test-images": gzip.compress(idx_images()),
        "mnist-test-labels": idx_labels(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {name: folder / name for name in contents}


def zip_paths(folder: Path) -> dict[str, Path]:
    """Write the two files of the zip digits."""
    for name in ("zip-train", "zip-test"):
        (folder / name).write_bytes(zip_text())
    return {name: folder / name for name in ("zip-train", "zip-test")}


def source(name: str, rows: int = 8) -> raw_files.Source:
    """Return a source as the fakes have it."""
    counts = {} if name.endswith("images") else {"0": 1, "1": 1, "3": 3, "8": 3}
    return replace(raw_files.find(name), rows=rows, counts=counts)


def test_two_digits_are_chosen_with_their_pixels(tmp_path: Path) -> None:
    """Labels are 1 for the positive digit; pixels are the file's, ids its places."""
    table = MNIST.clients(MNIST.Parameters(part="train"), mnist_paths(tmp_path))
    places = [0, 1, 3, 4, 5, 7]
    assert table["client_id"].tolist() == places
    assert table["label"].tolist() == [0, 1, 1, 0, 0, 1]
    assert table["group"].tolist() == list(range(6))
    assert table["curve"].dtype == np.float64
    assert np.array_equal(table["curve"], PIXELS[places])


@pytest.mark.parametrize("module", [MNIST, ZIP])
def test_ids_do_not_depend_on_the_parameters(tmp_path: Path, module: object) -> None:
    """Both parts have the ids of each part alone, and a place's id is one only."""
    paths = {MNIST: mnist_paths, ZIP: zip_paths}[module](tmp_path)
    ids = {
        part: module.clients(module.Parameters(part=part), paths)["client_id"].tolist()
        for part in ("train", "test", "both")
    }
    assert ids["both"] == ids["train"] + ids["test"]
    assert len({*ids["both"]}) == len(ids["both"])
    other = module.Parameters(positive=0, negative=8, part="train")
    assert module.clients(other, paths)["client_id"].tolist() == [1, 3, 6, 7]


def test_fewer_training_images_take_the_first_labels(tmp_path: Path) -> None:
    """Ten thousand images go with the first of 60,000 labels; the report says so."""
    paths = mnist_paths(tmp_path, train=4)
    parameters = MNIST.Parameters(part="train")
    assert MNIST.clients(parameters, paths)["label"].tolist() == [0, 1, 1]
    assert images.DERIVED in MNIST.facts(parameters, paths)["notes"]
    test = MNIST.facts(MNIST.Parameters(part="test"), paths)
    assert images.DERIVED not in test["notes"]
    paths["mnist-test-images"].write_bytes(idx_images(PIXELS[:4]))
    with pytest.raises(UserError, match="4 test images do not fit 8 labels"):
        MNIST.clients(MNIST.Parameters(part="test"), paths)


@pytest.mark.parametrize(("module", "lower"), [(MNIST, 0), (ZIP, -1)])
def test_facts_state_public_bounds(tmp_path: Path, module: object, lower: int) -> None:
    """Every pixel has the format's bounds; repeated images are counted."""
    paths = {MNIST: mnist_paths, ZIP: zip_paths}[module](tmp_path)
    facts = module.facts(module.Parameters(), paths)
    pixels = module.side**2
    assert facts["grid"] == list(range(pixels))
    assert len({feature["name"] for feature in facts["features"]}) == pixels
    assert {feature["lower"] for feature in facts["features"]} == {lower}
    assert facts["counts"] == {"3": 6, "8": 6}
    assert facts["duplicates"] == {"policy": "keep", "rows": 12, "distinct": 6}


def test_zip_labels_are_written_with_decimals() -> None:
    """5.0000 is the digit 5; the grey values come back as they were."""
    greys, labels = images.parse_digits(zip_text())
    assert labels.tolist() == LABELS.tolist()
    assert np.array_equal(greys, GREYS)


WRONG_IDX = {
    "labels for images": (idx_labels(), "mnist-test-images", "2049 .idx labels., not"),
    "images for labels": (idx_images(), "mnist-test-labels", "2051 .idx images., not"),
    "cut": (idx_images()[:-1], "mnist-test-images", "6271 bytes after its header"),
    "too long": (idx_labels() + b"\0", "mnist-test-labels", "9 bytes after its header"),
    "a page": (b"<html>", "mnist-test-labels", "6 bytes are too few"),
    "other rows": (idx_images(PIXELS[:7]), "mnist-test-images", "7 rows instead of 8"),
    "no digit": (idx_labels(LABELS + 2), "mnist-test-labels", "label 2 is 10, not"),
    "other counts": (
        idx_labels(LABELS[::-1] // 2),
        "mnist-test-labels",
        "0 2 instead of 1, 1 3 instead of 1, 3 0 instead of 3, 4 3 instead of 0, 8 0",
    ),
    "other shape": (
        struct.pack(">4I", 2051, 8, 16, 16) + bytes(2048),
        "mnist-test-images",
        "16 x 16, not 28 x 28",
    ),
}


@pytest.mark.parametrize("case", WRONG_IDX)
def test_wrong_idx_files_are_refused(case: str) -> None:
    """The message says what was found and what would be right."""
    data, name, message = WRONG_IDX[case]
    with pytest.raises(UserError, match=message):
        MNIST.check(data, source(name))


WRONG_ZIP = {
    "a label": (zip_text(LABELS + 0.5), "label that is no digit in 8 lines: 1, 2"),
    "a value": (
        zip_text(greys=GREYS * 3),
        "grey value missing or not in .-1, 1. in 8",
    ),
    "a short line": (zip_text()[:-20], "missing or not in .-1, 1. in 1 lines: 8"),
    "short lines": (zip_text(greys=GREYS[:, 1:]), "256 values, not 257"),
    "words": (zip_text().replace(b" ", b" x", 1), "no table of numbers"),
    "a row less": (zip_text(LABELS[:7], GREYS[:7]), "7 rows instead of 8"),
    "other counts": (zip_text(LABELS[::-1] // 2), "0 2 instead of 1"),
}


@pytest.mark.parametrize("case", WRONG_ZIP)
def test_wrong_zip_files_are_refused(case: str) -> None:
    """The message says what was found, with lines and counts."""
    data, message = WRONG_ZIP[case]
    with pytest.raises(UserError, match=message):
        ZIP.check(data, source("zip-train"))


def test_right_files_are_accepted() -> None:
    """Each file passes its own check."""
    MNIST.check(idx_images(), source("mnist-train-images"))
    MNIST.check(idx_labels(), source("mnist-train-labels"))
    ZIP.check(zip_text(), source("zip-test"))


@needs_mirror
@pytest.mark.parametrize("part", ["train", "test", "both"])
@pytest.mark.parametrize("module", [MNIST, ZIP])
def test_published_files_hold_what_is_published(module: object, part: str) -> None:
    """Each file passes its check; the number of clients is the one stated before."""
    parameters = module.Parameters(positive=7, negative=1, part=part)
    paths = real(*module.files(parameters))
    for name, path in paths.items():
        module.check(gzip.decompress(path.read_bytes()), raw_files.find(name))
    table = module.clients(parameters, paths)
    assert len(table["curve"]) == module.size(parameters)
    (feature, *_) = module.facts(parameters, paths)["features"]
    assert (table["curve"].min(), table["curve"].max()) == (
        feature["lower"],
        feature["upper"],
    )
