"""Features of public records, made without a label: of images, or from a file.

Nothing but `FeatureChoice` sees a code, and nothing a label: whatever these are, the
features are the same, and cost nothing.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from curvote.base import table_file, validate
from curvote.base.errors import UserError
from curvote.base.table_file import MAX_LISTED, Violations
from curvote.base.validate import FloatArray
from curvote.chain.stage import Metadata
from curvote.learning.estimators import numeric_records
from curvote.systems.labels.learners import smoothing
from curvote.systems.labels.learners.base import Learner, TrainingSet
from curvote.systems.labels.messages import RECORD
from curvote.systems.labels.method.classifier import left_out_votes
from curvote.systems.labels.neural.learner import image_shape

KINDS = PIXELS, HOG, WAVELET = "pixels", "hog", "wavelet"
# What `auto` chooses among, simplest first.
CANDIDATES = ("pca", HOG, WAVELET)


@dataclass(eq=False, repr=False)
class ImageFeatures(TransformerMixin, BaseEstimator):
    """Numbers that describe public images: gradients, wavelets, or upright pixels.

    Nothing is learnt but the number of pixels, and nothing was tuned: the published
    settings stand. Of ``hog`` nine orientations and blocks of 2 x 2 cells, normalised
    with a clip, whose cells are an eighth of a side (Dalal and Triggs 2005); of
    ``wavelet`` the moduli of two levels of an undecimated Daubechies-2 transform and
    its smooth part, averaged over 4 x 4 pixels (as a first layer of scattering: Bruna
    and Mallat 2013). The extra ``images`` brings the libraries.

    Parameters
    ----------
    kind : "hog", "wavelet" or "pixels", default="hog"
        What describes an image.
    deskew : bool, default=False
        Whether images are first sheared until their rows and columns are uncorrelated:
        until ink stands upright (LeCun et al. 1998).

    Attributes
    ----------
    background_ : float
        The least value: that without ink.
    n_features_in_ : int
        Pixels of a record: a square row by row, one plane of colour after the other.
    feature_names_in_ : array
        Their names, where X was a DataFrame.

    Examples
    --------
    >>> import numpy as np
    >>> slanted = np.eye(16).reshape(1, -1)
    >>> upright = ImageFeatures("pixels", deskew=True).fit_transform(slanted)
    >>> print(np.flatnonzero(upright.reshape(16, 16).sum(axis=0) > 0.1))
    [7 8]
    """

    kind: str = HOG
    _: KW_ONLY
    deskew: bool = False

    def fit(self, X: ArrayLike, y: None = None) -> Self:
        """Learn size and background of the images X, (n, d)."""
        validate.one_of(KINDS, kind=self.kind)
        validate.boolean(deskew=self.deskew)
        records = numeric_records(self, X)
        image_shape(records.shape[1], None)
        self.background_ = float(records.min())
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the numbers of images (n, d), a row each."""
        check_is_fitted(self)
        records = numeric_records(self, X, reset=False)
        height, width, planes = image_shape(records.shape[1], None)
        images = np.moveaxis(records.reshape(-1, planes, height, width), 1, -1)
        images = images.copy()  # scikit-image refuses what is read-only
        if self.deskew:
            images = _upright_images(images, self.background_)
        if self.kind == HOG:
            return _oriented_gradients(images)
        if self.kind == WAVELET:
            images = _wavelet_moduli(images)
        return np.asarray(np.moveaxis(images, -1, 1).reshape(len(images), -1))


def _upright_images(images: FloatArray, background: float) -> FloatArray:
    """Return images (n, s, s, c) sheared until rows and columns are uncorrelated."""
    at, ink = np.arange(images.shape[1]), (images - background).mean(axis=3)
    mass = np.maximum(ink.sum(axis=(1, 2)), np.finfo(np.float64).tiny)[:, None]
    centre = ink.sum(axis=2) @ at[:, None] / mass
    rows, columns = at - centre, at - ink.sum(axis=1) @ at[:, None] / mass
    spread = np.einsum("nyx,ny->n", ink, rows**2)
    joint = np.einsum("nyx,ny,nx->n", ink, rows, columns)
    shear = np.divide(joint, spread, out=np.zeros_like(joint), where=spread > 0)
    warp, upright = _extra("skimage.transform").warp, np.empty_like(images)
    for place, (lean, middle) in enumerate(zip(shear, centre[:, 0], strict=True)):
        back = np.array([[1, lean, -lean * middle], [0, 1, 0], [0, 0, 1]])
        options = {"order": 1, "cval": background, "preserve_range": True}
        upright[place] = warp(images[place], back, **options)
    return upright


def _oriented_gradients(images: FloatArray) -> FloatArray:
    """Return histograms of oriented gradients (n, m) of images (n, s, s, c)."""
    # Dalal and Triggs: 9 orientations, 2 x 2 cells a block, L2-Hys, and cells of 8
    # pixels in a window 64 wide, which is an eighth. Nothing here was chosen by data.
    cell = max(2, (images.shape[1] + 4) // 8)
    cells: dict[str, Any] = {"pixels_per_cell": (cell, cell), "cells_per_block": (2, 2)}
    cells |= {"orientations": 9, "block_norm": "L2-Hys", "channel_axis": -1}
    hog = _extra("skimage.feature").hog
    return np.asarray([hog(image, **cells) for image in images])


def _wavelet_moduli(images: FloatArray) -> FloatArray:
    """Return the pooled moduli of images (n, s, s, c), (n, bands, places, c)."""
    n, side, _, planes = images.shape
    margin, pool = (0, -side % 4), 4  # two levels halve a side twice
    padded = np.pad(images, ((0, 0), margin, margin, (0, 0)), "edge")
    options: dict[str, Any] = {"level": 2, "axes": (1, 2), "norm": True}
    smooth, *levels = _extra("pywt").swt2(padded, "db2", trim_approx=True, **options)
    bands = [smooth, *(np.abs(band) for level in levels for band in level)]
    shape = (len(bands), n, padded.shape[1] // pool, pool, -1, pool, planes)
    pooled = np.reshape(bands, shape).mean(axis=(3, 5))
    return np.asarray(np.moveaxis(pooled, 0, 1).reshape(n, len(bands), -1, planes))


def _extra(module: str) -> Any:
    """Return a module of the extra ``images``; a UserError where it is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        raise UserError(
            f"{error.name} is not installed, which describes images: pip install"
            " 'curvote[images]'."
        ) from error


def reduction_of(done: Metadata, values: FloatArray) -> Any:
    """Return the unfitted steps that make features of public ``values`` (n, d).

    ``done`` is what `curvote.systems.labels.stages` records of them; ``auto`` has the
    columns of all `CANDIDATES`. More components than there can be are a UserError.
    """

    def chain_of(kind: str | None) -> Any:
        steps, width, size = list[Any](), values.shape[1], done["size"]
        if kind in KINDS or done.get("deskew"):
            image_kind = kind if kind in KINDS else PIXELS
            steps.append(ImageFeatures(image_kind, deskew=done["deskew"]))
            width = steps[0].fit_transform(values[:1]).shape[1]
        if done["scale"]:
            steps.append(StandardScaler())
        if size is not None:
            if size > (most := min(len(values), width)):
                raise UserError(
                    f"{size} components of {len(values)} records with {width} numbers;"
                    f" at most {most} there are.",
                    where=("public", "size"),
                )
            steps.append(PCA(size, svd_solver="covariance_eigh", random_state=0))
        return make_pipeline(*steps) if steps else "passthrough"

    if done.get("features") != "auto":
        return chain_of(done.get("features"))
    return FeatureUnion([(name, chain_of(name)) for name in CANDIDATES])


@dataclass(eq=False, repr=False)
class FeatureChoice(Learner):
    """A learner on those features of the records that make the codes likeliest.

    Records hold the columns of each of ``names`` in turn, as many of each. ``learners``
    are unfitted ones, one each; None where features are not tried. The likelihood is
    that of left-out votes; the first that cannot be told from the best is taken.

    Attributes:
        learner_: the learner on the features that were chosen, fitted.
    """

    names: Sequence[str]
    learners: Sequence[Learner | None]

    def _learn(self, data: TrainingSet) -> None:
        seed, votes = int(data.rng.integers(2**63)), {}
        fits: dict[str, Learner] = {}
        for name, learner in zip(self.names, self.learners, strict=True):
            if learner is not None:
                X, further = self._columns(data.X, name), data.unlabelled
                further = None if further is None else self._columns(further, name)
                rng = np.random.default_rng(seed)  # the same folds for all
                part = TrainingSet(X, data.codes, rng, further)
                fits[name] = clone(learner).fit(*part)
                votes[name] = left_out_votes(fits[name], *part)
        judges = reduce(np.intersect1d, (rows for rows, _ in votes.values()))
        likely = data.codes[judges].likelihood()
        trials = [
            smoothing.make_trial(name, {}, values[np.isin(rows, judges)], likely)
            for name, (rows, values) in votes.items()
        ]
        chosen = smoothing.simplest_trial(trials).name
        self.learner_ = fits[chosen]
        self.chosen_ = {"features": chosen, **self.learner_.chosen_}
        self.tried_ = [*(trial.to_row() for trial in trials), *self.learner_.tried_]
        self._set_left_out(self.learner_.without_own)

    def votes(self, X: FloatArray) -> FloatArray:
        """Return the votes of the learner on its columns of records (n, d)."""
        return np.asarray(
            self.learner_.votes(self._columns(X, self.chosen_["features"]))
        )

    def fixed(self) -> Learner:
        """Return the choice of these features alone, its learner's settings stated."""
        chosen, learner = self.chosen_["features"], self.learner_.fixed()
        learners = [learner if name == chosen else None for name in self.names]
        return FeatureChoice(self.names, learners)

    def _columns(self, X: FloatArray, name: str) -> FloatArray:
        return np.split(X, len(self.names), axis=1)[self.names.index(name)]


def read_vectors(path: Path) -> tuple[list[str], pd.DataFrame]:
    """Return the names (n,) of records and their vectors (n, d) by column.

    Parquet has a column ``record`` and columns of numbers. NPY has a row a record, in
    the order of the source, and names none. UserError: everything that is wrong.
    """
    problems, records = Violations(path), list[str]()
    if path.suffix == ".npy":
        try:
            table = pd.DataFrame(np.load(path, allow_pickle=False))
        except ValueError as error:
            message = f"{path}: no table of numbers, a row a record: {error}."
            raise UserError(message) from None
        table = table.rename(columns="vector {}".format)
    else:
        table = table_file.read_table(path)
        if problems.note_columns([*table], [RECORD]):
            problems.check()
        records = table_file.read_texts(table, RECORD, problems)
        again = table_file.repeated_texts(records)
        problems.note_rows(table, again, "record: a record that stood there before")
        table = table.drop(columns=RECORD)
    if not table.size:
        problems.note("no numbers in any column")
    numbers = table_file.read_numbers(table, [*table], problems)
    problems.check()
    return records, pd.DataFrame(numbers, columns=table.columns)


def vectors_of(path: Path, names: Sequence[str]) -> FloatArray:
    """Return the vectors (n, d) of the named records; one without is a UserError."""
    records, table = read_vectors(path)
    if not records and len(table) != len(names):
        raise UserError(
            f"{path}: {len(table)} rows, but {len(names)} records; a .npy file has a"
            " row for each record, in the order of the source."
        )
    place = {name: row for row, name in enumerate(records or names)}
    if absent := [name for name in names if name not in place]:
        listed = ", ".join(absent[:MAX_LISTED])
        raise UserError(f"{path}: no vector of {len(absent)} records: {listed}.")
    return np.asarray(table.iloc[[place[name] for name in names]])
