"""A model in a file: skops holds data only, pickle runs whatever it says."""

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
class Loaded:
    """A model, and what its reader should be told of it, a sentence each."""

    model: Any
    notes: tuple[str, ...] = ()


def load(path: Path, *, trusted: Path | None = None) -> Loaded:
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
    return of_skops(path) if suffix == SKOPS else _of_pickle(path, named=bool(trusted))


def _check_trusted(path: Path, trusted: Path | None) -> None:
    if trusted is None:
        return
    if path.suffix.lower() == SKOPS:
        raise UserError(f"{path} is no pickle: leave out --trust-pickle.")
    if trusted.resolve() != path.resolve():
        raise UserError(
            f"--trust-pickle names {trusted}, and the model is {path}; it trusts the"
            " one file that it names."
        )


def of_skops(path: Path, shown: str | None = None) -> Loaded:
    """Return the model of a skops file, which errors call ``shown``."""
    import skops.io

    name = shown or str(path)
    _read(name, lambda: _check_size(path))
    found = _read(name, lambda: skops.io.get_untrusted_types(file=path))
    strange = sorted(set(found) - set(KNOWN_SAFE))
    if strange:
        raise UserError(
            f"{name} holds types that are not known to be safe:"
            f" {', '.join(strange)}. Nothing was loaded. Where you trust its maker,"
            " load it in Python, `skops.io.load(path, trusted=[...])`, and ask"
            " `curvote.utility.quantify`."
        )
    trusted = list(KNOWN_SAFE)
    loaded = _told(name, lambda: skops.io.load(path, trusted=trusted))
    check_memory(loaded.model)
    return loaded


def _check_size(path: Path) -> None:
    """Refuse an archive that unpacks to far more than it is, before any of it is."""
    with ZipFile(path) as archive:
        size = sum(each.file_size for each in archive.infolist())
    if size > max(LARGE, MOST_UNPACKED * path.stat().st_size):
        raise ValueError(
            f"it would unpack to {size / 1e6:.0f} MB, over {MOST_UNPACKED} times its"
            " own size"
        )


def _of_pickle(path: Path, *, named: bool) -> Loaded:
    if not named:
        raise UserError(
            f"{path} is a pickle, and loading a pickle runs whatever code is in it:"
            f" nothing was loaded. If you trust whoever made it, convert it:\n"
            "  import joblib, skops.io\n"
            f'  skops.io.dump(joblib.load("{path}"), "{path.with_suffix(SKOPS)}")\n'
            f"or load it here by naming the very file: --trust-pickle {path}"
        )
    import joblib

    return _told(str(path), lambda: joblib.load(path))


def _told(name: str, read: Callable[[], Any]) -> Loaded:
    """Load, and keep what scikit-learn says of another version of itself."""
    from sklearn.exceptions import InconsistentVersionWarning

    with FILTERS, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", InconsistentVersionWarning)
        model = _read(name, read)
    others = [
        each.message
        for each in said
        if isinstance(each.message, InconsistentVersionWarning)
    ]
    return Loaded(model, (_version_note(name, others[0]),) if others else ())


def _version_note(name: str, warning: Any) -> str:
    fitted, here = warning.original_sklearn_version, warning.current_sklearn_version
    return (
        f"{name} was fitted by scikit-learn {fitted}, here is {here}: its answers may"
        " differ from those it gave there. Compare them on records that you know."
    )


def _read(name: str, read: Callable[[], Any]) -> Any:
    try:
        return read()
    except BadZipFile:
        raise UserError(f"{name} is no skops file (it is no archive at all).") from None
    except Exception as error:  # noqa: BLE001 - a loader's errors are of any kind
        words = f"{type(error).__name__}, {error}".strip().replace("\n", " ")
        raise UserError(f"{name} holds no model that loads here: {words}.") from None
