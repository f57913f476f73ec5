"""Settings of private labels and numbers in pipelines.yaml, and their checks."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from curvote.base.errors import Problem, UserError
from curvote.chain.axis import PipelineSettings
from curvote.chain.settings import Count, Epsilons, Strict, WholeNumber
from curvote.data import lookup
from curvote.systems.common import checks as shared
from curvote.systems.common.settings import Clients, Learner
from curvote.systems.labels.codes.encoders import AUTO, mechanism_name

EMBEDDING = "embedding:"
VectorFile = Annotated[str, Field(pattern=rf"^{EMBEDDING}.+\.(npy|parquet)$")]


class Public(Strict):
    """Treatment of public features before anybody is asked; it costs nothing.

    With ``columns`` all others are private: each is one of ``bins`` words, or a
    category, that is hidden in one code with the label.
    """

    scale: Literal["auto", "standard", "none"] = "auto"
    reduce: Literal["none", "pca"] = "none"
    size: WholeNumber | None = None
    features: Literal["pca", "hog", "wavelet", "auto"] | VectorFile | None = None
    deskew: bool = False
    columns: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    bins: Annotated[int, Field(ge=2, strict=True)] = 3


class Labels(Strict):
    """Codes that are asked of labels, and what is made of them."""

    encoder: str = "auto"
    rounds: Literal[1, 2] = 1
    holdout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    decide: Literal["accuracy", "balanced"] = "accuracy"
    calibrate: bool = True


class Owners(Clients):
    """Numbers of clients in each role; where labels are elsewhere, none here."""

    train: Count = 0


class LabelSettings(Strict):
    """Settings that private labels read."""

    clients: Owners = Owners()
    epsilon: Epsilons
    public: Public = Public()
    labels: Labels = Labels()
    learners: list[Learner] = [Learner(name="auto", label="auto")]


class CleanSettings(Strict):
    """Settings of private labels, without an epsilon."""

    clients: Clients
    public: Public = Public()
    labels: Labels = Labels()
    learners: list[Learner] = [Learner(name="auto", label="auto")]


_Share = Annotated[float, Field(gt=0, lt=1)]


class Regression(Strict):
    """Noise of a number, and the shares of clients who send it for each purpose."""

    randomizer: Literal["auto", "piecewise", "hybrid", "rr_on_bins"] = "auto"
    share: _Share = 0.2
    holdout: _Share = 0.2


class RegressionSettings(Strict):
    """Settings that learning private numbers reads."""

    clients: Clients
    epsilon: Epsilons
    public: Public = Public()
    labels_regression: Regression = Regression()
    learners: list[Learner] = [Learner(name="ridge", label="ridge")]


Problems = Iterator[Problem]


def check_settings(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of roles, the encoder, learners and rounds."""
    yield from check_learning(pipeline)
    labels = pipeline.labels
    try:
        # A source that lists no classes has two.
        n_classes = len(lookup.classes(pipeline.source) or (0, 1))
        for epsilon in pipeline.epsilon:
            mechanism_name(labels.encoder, n_classes, epsilon)
    except UserError as error:
        yield Problem(str(error), ("labels", "encoder"))
    if labels.rounds == 1 and labels.encoder == "rr_with_prior":
        message = "rr_with_prior needs a first round: write rounds: 2."
        yield Problem(message, ("labels", "rounds"))
    if labels.rounds == 2 and labels.encoder not in (AUTO, "rr_with_prior"):
        message = f"two rounds have encoders of their own, not {labels.encoder}."
        yield Problem(message, ("labels", "encoder"))
    source, columns = pipeline.source, pipeline.public.columns
    if labels.rounds == 2 and (columns or source.get("private")):
        message = "two rounds ask for a label alone: every column is public there."
        yield Problem(message, ("labels", "rounds"))
    if columns and lookup.is_remote(source):
        message = "here `private` of the source says which columns are not in the file."
        yield Problem(message, ("public", "columns"))
    if labels.rounds == 2 and pipeline.production:
        message = "a second round cannot be sent as a task: it is for studies only."
        yield Problem(message, ("labels", "rounds"))
    if pipeline.production and pipeline.intake and pipeline.intake.online:
        message = "a model is made of all codes at once: wait for them, then close."
        yield Problem(message, ("intake", "online"))


def check_learning(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of roles, public features and learners."""
    yield from shared.check_roles(pipeline)
    away, roles = lookup.is_remote(pipeline.source), pipeline.clients.model_dump()
    if away and any(roles.values()):
        message = "every record of the public table is asked: leave clients out."
        yield Problem(message, ("clients",))
    if not (away or pipeline.clients.train):
        yield Problem("say how many clients train.", ("clients", "train"))
    yield from shared.check_test_clients(pipeline)
    yield from check_public(pipeline)
    from curvote.systems.labels.learners.factory import make  # scikit-learn: a second

    for index, learner in enumerate(pipeline.learners):
        try:
            make(learner.name, **learner.params)
        except UserError as error:
            yield Problem(str(error), ("learners", index))


def check_public(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of what is done to public features."""
    public, kind = pipeline.public, pipeline.public.features
    if "pca" in (public.reduce, kind) or kind == "auto":
        if public.size is None:
            yield Problem("is missing: say how many components.", ("public", "size"))
    elif public.size is not None and kind is None:
        message = "is read with reduce: pca or features only."
        yield Problem(message, ("public", "size"))
    if kind is not None and (public.columns or pipeline.source.get("private")):
        message = "describes whole records, and of these some columns are private."
        yield Problem(message, ("public", "features"))
    # An image collection, or a plug-in's, says how many planes of colour it has.
    has_images = hasattr(lookup.find_dataset(pipeline.source["name"]), "planes")
    if image_libraries(pipeline) and (vector_files(pipeline) or not has_images):
        key, word = ("deskew", "it") if public.deskew else ("features", kind)
        message = f"{word} is for images, and these records are none: leave it out."
        yield Problem(message, ("public", key))


def image_libraries(pipeline: PipelineSettings) -> tuple[str, ...]:
    """Return the libraries whose versions count for features of images."""
    described = pipeline.public.features in ("hog", "wavelet", "auto")
    used = described or pipeline.public.deskew
    return ("scikit-image", "PyWavelets") if used else ()


def vector_files(pipeline: PipelineSettings) -> tuple[str, ...]:
    """Return the file of public vectors that a pipeline names, if any."""
    name = pipeline.public.features or ""
    return (name.removeprefix(EMBEDDING),) if name.startswith(EMBEDDING) else ()


def check_regression(pipeline: PipelineSettings) -> Problems:
    """Yield the problems of roles, the source, public features and learners."""
    if pipeline.public.columns:
        message = "a private number is asked for alone: every column is public here."
        yield Problem(message, ("public", "columns"))
    yield from shared.check_roles(pipeline)
    yield from shared.check_test_clients(pipeline)
    yield from check_public(pipeline)
    _, parameters = lookup.resolve_source(pipeline.source)
    if pipeline.public.features == "auto":
        message = "auto is chosen by codes of classes: name the features here."
        yield Problem(message, ("public", "features"))
    if getattr(parameters, "target", None) is None:
        message = "labels_regression learns a number; name a target."
        yield Problem(message, ("source",))
    from curvote.systems.labels.regression import regressor  # scikit-learn: a second

    for index, learner in enumerate(pipeline.learners):
        where = ("learners", index)
        try:
            regressor.make_regressor(learner.name, 1, 0)
        except UserError as error:
            yield Problem(str(error), where)
        if learner.params:
            message = (
                f"{learner.name} is tuned by the noised numbers; it takes no parameters"
                " here."
            )
            yield Problem(message, where)
