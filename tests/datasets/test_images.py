"""Image collections of several classes: places, parts and formats."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from curvote.base.errors import UserError
from curvote.data import lookup, raw_files
from curvote.data.public.cifar import CIFAR_10, CIFAR_100
from curvote.data.public.images import FASHION_MNIST, MNIST, ZIP, ImageSet
from tests import image_files

RNG = np.random.default_rng(5)
LABELS = np.concatenate([np.arange(10), [3, 3, 7, 1]])
N = len(LABELS)
PIXELS = RNG.integers(0, 256, (N, 784), dtype=np.uint8)
COLOURS = RNG.integers(0, 256, (N, 3072), dtype=np.uint8)
TENS = [MNIST, FASHION_MNIST, ZIP, CIFAR_10]


def zip_text() -> bytes:
    """Return the zip digits of the labels."""
    lines = [f"{label:.4f} " + " ".join(["0.5"] * 256) for label in LABELS]
    return "\n".join(lines).encode()


def cifar_files(module: ImageSet) -> dict[str, bytes]:
    """Return the files of an archive: each training file has a fifth of the images."""
    archive = module
    fine = archive.labels == 2
    files = {archive.listed: "\n".join([*archive.class_names, "", ""]).encode()}
    parts = np.array_split(np.arange(N), len(archive.train))
    for name, rows in zip(archive.train, parts, strict=True):
        files[name] = image_files.tiny(LABELS[rows], COLOURS[rows], fine)
    (test,) = archive.test
    return files | {test: image_files.tiny(LABELS, 255 - COLOURS, fine)}


def put(module: ImageSet, folder: Path, **said: Any) -> dict[str, Path]:
    """Write the raw files of a collection: all labels in both parts."""
    names = module.files(module.Parameters(**said))
    if module is ZIP:
        content = dict.fromkeys(names, zip_text())
    elif module in (CIFAR_10, CIFAR_100):
        content = {names[0]: gzip.compress(image_files.tar(cifar_files(module)))}
    else:
        return image_files.idx_paths(folder, names, LABELS, PIXELS)
    for name, data in content.items():
        (folder / name).write_bytes(data)
    return {name: folder / name for name in content}


@pytest.mark.parametrize("module", TENS)
def test_all_classes_stand_in_the_publishers_order(tmp_path, module):
    """A label is the publisher's number; facts, lookup and counts agree."""
    said = {"classes": "all"}
    paths = put(module, tmp_path, **said)
    parameters = module.Parameters.model_validate(said)
    table, facts = (
        module.clients(parameters, paths),
        module.facts(parameters, paths),
    )
    assert table["label"].tolist() == [*LABELS, *LABELS]
    named = lookup.classes({"name": parameters.name, **said})
    assert named is not None
    assert facts["classes"] == list(named)
    counts = 2 * np.bincount(LABELS)
    assert facts["counts"] == dict(zip(named, counts.tolist(), strict=True))
    assert facts["rows"] == 2 * N == json.loads(json.dumps(facts))["rows"]
    assert len(facts["features"]) == table["curve"].shape[1] == len(facts["grid"])
    assert len({feature["name"] for feature in facts["features"]}) == len(facts["grid"])


@pytest.mark.parametrize("module", TENS)
@pytest.mark.parametrize("places", [[7, 3, 1], [9, 0]])
def test_listed_classes_stand_in_the_order_of_the_list(tmp_path, module, places):
    """Each record keeps its id and its pixels whatever else is chosen."""
    names = module.class_names
    listed: list[Any] = [names[place] for place in places]
    if module in (MNIST, ZIP):
        listed = places
    paths = put(module, tmp_path)
    everybody = module.clients(module.Parameters(classes="all"), paths)
    table = module.clients(module.Parameters(classes=listed), paths)
    assert [places[label] for label in table["label"]] == [
        label for label in [*LABELS, *LABELS] if label in places
    ]
    rows = np.isin(everybody["client_id"], table["client_id"])
    assert np.array_equal(everybody["curve"][rows], table["curve"])
    assert module.classes(module.Parameters(classes=listed)) == tuple(
        names[place] for place in places
    )


@pytest.mark.parametrize("module", [MNIST, ZIP])
def test_the_short_form_of_two_is_the_list_of_two(tmp_path, module):
    """Negative first: same facts, same clients."""
    paths = put(module, tmp_path)
    short = module.Parameters(negative=1, positive=7)
    listed = module.Parameters(classes=[1, 7])
    assert module.facts(short, paths) == module.facts(listed, paths)
    for name, column in module.clients(short, paths).items():
        assert np.array_equal(column, module.clients(listed, paths)[name])
    assert module.size(short) == module.size(listed)


@pytest.mark.parametrize("module", TENS)
def test_the_publishers_split_is_a_column(tmp_path: Path, module: ImageSet) -> None:
    """Training rows are 0, test rows 1; without `split` there is no such column."""
    said = {"classes": "all", "split": "published"}
    paths = put(module, tmp_path, **said)
    parameters = module.Parameters.model_validate(said)
    table = module.clients(parameters, paths)
    assert table["part"].tolist() == [0] * N + [1] * N
    assert module.facts(parameters, paths)["parts"] == {"train": N, "test": N}
    assert lookup.keeps_published_split({"name": parameters.name, **said})
    plain = module.Parameters(classes="all")
    assert "part" not in module.clients(plain, put(module, tmp_path))


def test_colours_stand_plane_by_plane(tmp_path: Path) -> None:
    """Of both parts and both archives: the bytes behind the labels, and their names."""
    for module in (CIFAR_10, CIFAR_100):
        paths = put(module, tmp_path)
        table = module.clients(module.Parameters(), paths)
        assert np.array_equal(table["curve"][:N], COLOURS)
        assert np.array_equal(table["curve"][N:], 255 - COLOURS)
        assert table["label"].tolist() == [*LABELS, *LABELS]
        ids = [*range(N), *range(50_000, 50_000 + N)]
        assert table["client_id"].tolist() == ids
    features = module.facts(module.Parameters(), paths)["features"]
    assert features[0]["name"] == "red, row 1, column 1"
    assert features[1025]["name"] == "green, row 1, column 2"
    assert features[-1]["name"] == "blue, row 32, column 32"


def published(module: ImageSet, **changes: bytes | None) -> None:
    """Check an archive in which each class has 5 training and 1 test image."""
    archive = module
    k, fine = len(archive.class_names), archive.labels == 2
    labels = np.tile(np.arange(k), 5)
    files = {archive.listed: "\n".join(archive.class_names).encode()}
    parts = np.array_split(labels, len(archive.train))
    for name, part in zip(archive.train, parts, strict=True):
        files[name] = image_files.tiny(part, np.zeros((len(part), 3072)), fine)
    files[archive.test[0]] = image_files.tiny(np.arange(k), np.zeros((k, 3072)), fine)
    given = {name: data for name, data in (files | changes).items() if data is not None}
    source = raw_files.find(archive.source)
    counts = dict.fromkeys(source.counts, 6)
    module.check(image_files.tar(given), replace(source, rows=6 * k, counts=counts))


WRONG: list[tuple[ImageSet, dict[str, bytes | None], str]] = [
    (CIFAR_10, {"batches.meta.txt": b"cat\ndog"}, "names other classes: cat, dog"),
    (CIFAR_10, {"test_batch.bin": None}, "no file test_batch.bin"),
    (CIFAR_10, {"data_batch_2.bin": bytes(3072)}, "3072 bytes, not a multiple of 3073"),
    (CIFAR_10, {"test_batch.bin": b""}, "0 bytes"),
    (CIFAR_10, {"test_batch.bin": bytes([10]) * 3073}, "label 1 is 10, no class"),
    (CIFAR_10, {"test_batch.bin": bytes(3073)}, "1 rows instead of 10"),
    (CIFAR_100, {"test.bin": bytes(3074)}, "1 rows instead of 100"),
    (CIFAR_100, {"train.bin": bytes(3073)}, "multiple of 3074"),
]


@pytest.mark.parametrize("module", [CIFAR_10, CIFAR_100])
def test_an_archive_as_published_passes(module: ImageSet) -> None:
    """Five of six images of each class train."""
    published(module)


@pytest.mark.parametrize(("module", "changes", "message"), WRONG)
def test_a_damaged_archive_is_refused(module, changes, message):
    """Names, files, lengths, labels and counts, with what was found."""
    with pytest.raises(UserError, match=message):
        published(module, **changes)


def test_what_is_no_archive_is_refused() -> None:
    """A page or a torn file instead of an archive."""
    source = raw_files.find("cifar-10")
    whole = image_files.tar(cifar_files(CIFAR_10))
    for data in (b"<html>" * 200, whole[: len(whole) // 2]):
        with pytest.raises(UserError, match=r"archive|no file"):
            CIFAR_10.check(data, source)


@pytest.mark.parametrize("part", ["train", "test"])
def test_clothes_are_checked_as_digits_are(part: str) -> None:
    """Rows of the images, counts of the labels."""
    labels = np.arange(10)
    images = replace(raw_files.find(f"fashion-{part}-images"), rows=N)
    FASHION_MNIST.check(image_files.idx_images(PIXELS), images)
    listed = raw_files.find(f"fashion-{part}-labels")
    with pytest.raises(UserError, match="10 rows instead of"):
        FASHION_MNIST.check(image_files.idx_labels(labels), listed)


@pytest.mark.parametrize("module", [*TENS, CIFAR_100])
@pytest.mark.parametrize(
    "wrong",
    [
        {"classes": []},
        {"classes": "every"},
        {"classes": ["none", "such"]},
        {"split": "random"},
        {"split": "published", "part": "test"},
    ],
)
def test_wrong_parameters_are_refused(module: ImageSet, wrong: dict[str, Any]) -> None:
    """Known classes, at least two, each once; the split needs both parts."""
    with pytest.raises(ValidationError, match=next(iter(wrong))):
        module.Parameters.model_validate(wrong)
    twice = [module.class_names[0]] * 2 if module not in (MNIST, ZIP) else [3, 3]
    with pytest.raises(ValidationError, match="each class once"):
        module.Parameters(classes=twice)


@pytest.mark.parametrize("module", [MNIST, ZIP])
def test_classes_and_the_short_form_exclude_each_other(module: ImageSet) -> None:
    """One way to say it."""
    with pytest.raises(ValidationError, match="give classes, or positive"):
        module.Parameters(classes="all", positive=5)


@pytest.mark.parametrize("side", [1, 7, 14, 28])
def test_a_value_is_the_mean_of_its_square(tmp_path, side):
    """Row by row; as many as the source says, each named once."""
    parameters = MNIST.Parameters(classes="all", side=side)
    paths = put(MNIST, tmp_path)
    curves = MNIST.clients(parameters, paths)["curve"][:N]
    each, grid = 28 // side, PIXELS.reshape(N, 28, 28)
    for row, column in [(0, 0), (side - 1, 0), (side // 2, side - 1)]:
        rows, columns = slice(row * each, None), slice(column * each, None)
        square = grid[:, rows, columns][:, :each, :each]
        assert np.allclose(curves[:, row * side + column], square.mean(axis=(1, 2)))
    assert curves.shape[1] == MNIST.width(parameters)
    facts = MNIST.facts(parameters, paths)
    assert len({feature["name"] for feature in facts["features"]}) == side**2


def test_a_side_divides_that_of_the_publisher() -> None:
    """Colours shrink plane by plane; another side is refused with the publisher's."""
    assert CIFAR_10.width(CIFAR_10.Parameters(side=16)) == 3 * 256
    with pytest.raises(UserError, match="5 does not divide 28"):
        MNIST.width(MNIST.Parameters(side=5))
