"""Loading of a model file: skops with plain data only, pickle if trusted by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zipfile import BadZipFile, ZipFile

from curvote.errors import UserError
from curvote.utility.models.safe_types import KNOWN_SAFE, check_memory
from curvote.warned import FILTERS

SKOPS: Final = ".skops"
PICKLES: Final = (".pkl", ".pickle", ".joblib")
SUFFIXES: Final = (SKOPS, *PICKLES)
# Numbers that were packed shrink to a fifth at best; a bomb, to a thousandth. Below
# LARGE bytes nobody minds.
MOST_UNPACKED: Final = 30
LARGE: Final = 2**25


@dataclass(frozen=True)
class LoadedModel:
    """Loaded model, with notes for its reader."""

    model: Any
    notes: tuple[str, ...] = ()


def load_model(path: Path, *, trusted: Path | None = None) -> LoadedModel:
    """Return the model in the file at ``path``.

    ``trusted`` names the one pickle that the caller trusts to run code. UserError: no
    such file, types that are not known to be safe (nothing is loaded), a pickle that
    is not named, or a file that is neither.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UserError(
            f"{path}: a model is a {SKOPS} file, as `skops.io.dump` writes."
        )
    if not path.is_file():
        raise UserError(f"{path}: there is no such file.")
    _check_trusted(path, trusted)
    return (
        load_skops(path) if suffix == SKOPS else _load_pickle(path, named=bool(trusted))
    )


def _check_trusted(path: Path, trusted: Path | None) -> None:
    """Refuse a --trust-pickle that names another file."""
    if trusted is None:
        return
    if path.suffix.lower() == SKOPS:
        raise UserError(f"{path} is no pickle: leave out --trust-pickle.")
    if trusted.resolve() != path.resolve():
        raise UserError(
            f"--trust-pickle names {trusted}, and the model is {path}; it trusts the"
            " one file that it names."
        )


def load_skops(path: Path, display_name: str | None = None) -> LoadedModel:
    """Return the model of a skops file, which errors call by a display name."""
    import skops.io

    name = display_name or str(path)
    _read_or_refuse(name, lambda: _check_size(path))
    types = _read_or_refuse(name, lambda: skops.io.get_untrusted_types(file=path))
    unsafe = sorted(set(types) - set(KNOWN_SAFE))
    if unsafe:
        raise UserError(
            f"{name} holds types that are not known to be safe:"
            f" {', '.join(unsafe)}. Nothing was loaded. Where you trust its maker,"
            " load it in Python, `skops.io.load(path, trusted=[...])`, and ask"
            " `curvote.utility.quantify`."
        )
    trusted = list(KNOWN_SAFE)
    loaded = _load_noted(name, lambda: skops.io.load(path, trusted=trusted))
    check_memory(loaded.model)
    return loaded


def _check_size(path: Path) -> None:
    """Refuse an archive that unpacks to far more than it is, before any of it is."""
    with ZipFile(path) as archive:
        size = sum(entry.file_size for entry in archive.infolist())
    if size > max(LARGE, MOST_UNPACKED * path.stat().st_size):
        raise ValueError(
            f"it would unpack to {size / 1e6:.0f} MB, over {MOST_UNPACKED} times its"
            " own size"
        )


def _load_pickle(path: Path, *, named: bool) -> LoadedModel:
    """Return the model of a pickle that was trusted by name."""
    if not named:
        raise UserError(
            f"{path} is a pickle, and loading a pickle runs whatever code is in it:"
            f" nothing was loaded. If you trust whoever made it, convert it:\n"
            "  import joblib, skops.io\n"
            f'  skops.io.dump(joblib.load("{path}"), "{path.with_suffix(SKOPS)}")\n'
            f"or load it here by naming the very file: --trust-pickle {path}"
        )
    import joblib

    return _load_noted(str(path), lambda: joblib.load(path))


def _load_noted(name: str, read: Callable[[], Any]) -> LoadedModel:
    """Return a loaded model with scikit-learn's note on its version."""
    from sklearn.exceptions import InconsistentVersionWarning

    with FILTERS, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", InconsistentVersionWarning)
        model = _read_or_refuse(name, read)
    warnings_of_version = [
        warning.message
        for warning in caught
        if isinstance(warning.message, InconsistentVersionWarning)
    ]
    return LoadedModel(
        model,
        (_version_note(name, warnings_of_version[0]),) if warnings_of_version else (),
    )


def _version_note(name: str, warning: Any) -> str:
    """Return a note on a model of another scikit-learn version."""
    fitted, installed = (
        warning.original_sklearn_version,
        warning.current_sklearn_version,
    )
    return (
        f"{name} was fitted by scikit-learn {fitted}, here is {installed}: its answers"
        " may"
        " differ from those it gave there. Compare them on records that you know."
    )


def _read_or_refuse(name: str, read: Callable[[], Any]) -> Any:
    """Return the loader's result; any error of it is a UserError."""
    try:
        return read()
    except BadZipFile:
        raise UserError(f"{name} is no skops file (it is no archive at all).") from None
    except Exception as error:  # noqa: BLE001 - a loader's errors are of any kind
        words = f"{type(error).__name__}, {error}".strip().replace("\n", " ")
        raise UserError(f"{name} holds no model that loads here: {words}.") from None
