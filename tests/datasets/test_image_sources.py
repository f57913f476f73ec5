"""Where image collections come from: absent, stood in for by a copy, or here."""

from pathlib import Path

import numpy as np
import pytest

from curvote.data import lookup, raw_files
from curvote.data.public.images import ALL, MNIST, ZIP, ImageSet
from tests.real_files import needs_mirror


@pytest.mark.parametrize("name", ["fashion-mnist", "cifar-10", "cifar-100"])
def test_an_absent_collection_says_how_it_may_come(name, root, monkeypatch):
    """Sizes are known without it; each file is named, with the way to it."""
    monkeypatch.delenv(raw_files.MIRROR, raising=False)
    (root / "data" / "sources.toml").unlink()
    module = lookup.find_dataset(name)
    n = {"fashion-mnist": 70_000}.get(name, 60_000)
    assert module.size(module.Parameters()) == n
    rows = {row["source"]: row for row in raw_files.verify_all(root)}
    for file in module.files(module.Parameters()):
        assert raw_files.locate(root, file, download=False) is None
        assert f"curvote data fetch {file}" in str(rows[file]["message"])


def test_all_training_images_come_before_the_copy(root, tmp_path, monkeypatch):
    """The copy stands in where the publisher's file is not; else that is taken."""
    (root / "data" / "sources.toml").unlink()
    monkeypatch.setenv(raw_files.MIRROR, str(tmp_path))
    asked = MNIST.Parameters(split="published")
    assert MNIST.files(asked)[0] == ALL
    assert MNIST.size(asked) is None
    assert ALL not in MNIST.files(MNIST.Parameters())
    assert raw_files.locate(root, ALL, download=False) is None
    known = raw_files.catalogue(root)
    monkeypatch.setattr(
        raw_files, "check_edition", lambda path, source: (path.name, source.name)
    )
    for name in ("mnist-train-images", ALL):
        (tmp_path / known[name].file).touch()
        found = raw_files.locate(root, ALL)
        assert found == (known[name].file, name)
    assert raw_files.locate(root, "mnist-train-images") != found


@needs_mirror
@pytest.mark.parametrize("module", [MNIST, ZIP])
def test_the_real_digits_are_all_there(module: ImageSet, tmp_path: Path) -> None:
    """Ten classes as published, the publisher's parts, and no image in both."""
    parameters = module.Parameters(classes="all", split="published")
    names = module.files(parameters)
    found = {name: raw_files.locate(tmp_path, name, download=False) for name in names}
    paths = {name: file.path for name, file in found.items() if file}
    table = module.clients(parameters, paths)
    tested = table["part"] == 1
    expected = raw_files.find(names[-1]).counts
    counts = np.bincount(table["label"][tested]).tolist()
    assert counts == list(expected.values())
    assert set(table["label"][~tested].tolist()) == set(range(10))
