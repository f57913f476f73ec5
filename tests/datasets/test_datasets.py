"""The promises of every data set, over the registry and data/sources.toml."""

from pathlib import Path

import pytest

from curvote.base.errors import UserError
from curvote.data import lookup, raw_files, registry


def test_every_source_is_a_data_set_and_listed() -> None:
    """Names agree with the registry; rows are the sum of the classes."""
    for name, source in raw_files.catalogue().items():
        assert source.dataset in registry.DATASETS, name
        assert source.rows == sum(source.counts.values()) or not source.counts
        assert all(len(variant.sha256) == 64 for variant in source.variants)


def test_the_registry_names_what_a_data_set_offers() -> None:
    """Each module states its parameters, whether it is simulated, sizes and clients."""
    for name in registry.DATASETS:
        module = lookup.find_dataset(name)
        assert module.Parameters.model_fields["name"].default == name
        assert isinstance(module.SIMULATED, bool)
        assert callable(module.files)
        assert callable(module.size)
        assert callable(module.width)
        assert callable(module.facts)
        assert callable(module.clients)
    with pytest.raises(UserError, match="Did you mean 'phonemes'"):
        lookup.find_dataset("phoneme")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[phonemes", "sources.toml"),
        ("[phonemes]\nrow = 1", "variants"),
        ("phonemes = 1", "sources.toml is no list"),
    ],
)
def test_a_wrong_sources_file_is_named(root: Path, content: str, message: str) -> None:
    """Its syntax and its keys are the user's to mend."""
    (root / "data" / "sources.toml").write_text(content)
    with pytest.raises(UserError, match=message):
        raw_files.locate(root, "phonemes")
