"""Page sections of clients, curves, and a published data set: how records look."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from curvote.base.classes import Classes
from curvote.base.errors import InternalError
from curvote.chain.stage import Columns
from curvote.curves.basis import COSINES, FPCA, IDENTITY
from curvote.curves.encoding import RESCALING_CONSTANTS, UNBOUNDED_RESCALINGS
from curvote.data.lookup import resolve_source
from curvote.messages.roles import ROLES, Roles, roles_of_table
from curvote.pipeline.config.source import reads_user_file
from curvote.pipeline.run.results import RunView
from curvote.report import data, sentences, style
from curvote.report.card import Card, FeatureCard, make_card, render_card
from curvote.systems.common.models import read_encoding

_ROLE_NAMES = {
    "public": "volunteers",
    "train": "training clients",
    "vote": "vote clients",
    "test": "test clients",
    "judge": "judges",
}


@dataclass(frozen=True, eq=False)
class Clients(data.Section):
    """Sizes of roles: (wanted, fewest, most) over the replicates; what judges say."""

    sizes: Mapping[str, tuple[int, int, int]]
    groups: str | None = None
    finding: str = ""

    name: ClassVar[str] = "clients"
    place: ClassVar[str] = "end"

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """Rows of (role, wanted, actual) in words."""
        rows = []
        for role, (wanted, least, most) in self.sizes.items():
            actual = f"{least:,}" if least == most else f"{least:,} to {most:,}"
            rows.append((_ROLE_NAMES.get(role, role), f"{wanted:,}", actual))
        return rows


def gather_clients(views: Sequence[RunView], _: pd.DataFrame) -> Clients:
    """Return the sizes of the roles in the first of these cells."""
    view, settings = views[0], views[0].settings
    wanted, groups = settings.clients.model_dump(), settings.source.get("groups")
    outcome = view.system.production_metrics(view) if settings.production else {}
    finding = ""
    if "judges" in outcome:
        shares = (outcome[f"accuracy{end}"] for end in ("", "_low", "_high"))
        value, low, high = map(data.format_percent, shares)
        finding = (
            f"At epsilon {view.cell['epsilon']:g} the released classifier is right for"
            f" {value} % of the clients (95 % interval: {low} to {high} %), as"
            f" {outcome['judges']:,.0f} judges say, who had no part in it"
        )
    if settings.intake is None:
        replicates = range(settings.replicates if groups else 1)
        # No curve is read for it: of ten million clients these are gigabytes.
        few = ("label", "group", "part")
        roles = [replicate_roles(view, replicate, few)[1] for replicate in replicates]
        named = [role for role in reversed(ROLES) if role in wanted]
        counts = {role: [len(rows[role]) for rows in roles] for role in named}
    else:  # no client is here: messages tell
        reports = int(outcome["reports"])
        # Where nobody votes everybody reports, the training clients first.
        votes = int(outcome.get("votes", max(0, reports - settings.clients.train)))
        trained = reports if "votes" in outcome else reports - votes
        counts = {"train": [trained], "vote": [votes]}
        counts |= {"judge": [int(outcome["judges"])]} if "judges" in outcome else {}
    sizes = {role: (wanted[role], min(n), max(n)) for role, n in counts.items()}
    return Clients(sizes, groups, finding)


def replicate_roles(
    view: RunView, replicate: int, only: Sequence[str] | None = None
) -> tuple[Columns, Roles]:
    """Return a replicate's encoded clients, and the rows of each role among them.

    Of ``only`` some columns, where they are named.
    """
    settings, place = view.settings, view.place(replicate)
    rows = view.artifact("project").columns("encoded", place, only)
    number = replicate * math.prod(i.size(settings) for i in view.system.index[1:])
    params = {
        "seed": settings.seed,
        "clients": settings.clients.model_dump(),
        "source.groups": settings.source.get("groups"),
    }
    return rows, roles_of_table(rows, params, number)


@dataclass(frozen=True, eq=False)
class CurveSample:
    """Records that may be shown: volunteers' (public by consent) or simulated ones.

    ``grid[T]`` in ``unit``; ``curves[n, T]`` as recorded,
    ``fitted[n, T]`` their projections, ``z[n, d]`` before noise,
    ``labels[n]`` the places in ``classes``, two or more. ``basis`` and
    ``rescale`` are words, such as "4 cubic B-splines".
    """

    grid: data.FloatArray
    unit: str
    curves: data.FloatArray
    fitted: data.FloatArray
    z: data.FloatArray
    labels: NDArray[np.int64]
    classes: Classes
    basis: str
    rescale: str
    who: str

    def __post_init__(self) -> None:
        if self.who not in ("volunteers", "simulated"):
            raise InternalError(f"records of {self.who!r} are not public: not drawn")
        shape = (len(self.labels), len(self.grid))
        if self.curves.shape != shape or self.fitted.shape != shape:
            shapes = f"curves {self.curves.shape}, fitted {self.fitted.shape}"
            raise InternalError(f"{shapes}: both must be {shape}")
        if len(self.z) != len(self.labels):
            raise InternalError(f"z holds {len(self.z)} rows, not {len(self.labels)}")

    @property
    def bounded(self) -> bool:
        """Whether z lies in [-1, 1]; a direction needs no bounds."""
        return self.rescale.partition(" ")[0] not in UNBOUNDED_RESCALINGS

    @property
    def colours(self) -> list[str]:
        """A colour for each class."""
        return style.class_colours(len(self.classes))


MAX_CURVES = 60
MAX_POINTS = 80
MAX_COORDINATES = 12
_GOLDEN_RATIO = 0.6180339887498949
_STRIP_WIDTH = 0.76  # of a coordinate's strips, all classes together
_LINE_STYLES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))


def draw_curves(sample: CurveSample, narrow: bool) -> Figure:
    """Draw raw curves, projected curves and rescaled coefficients, by class.

    At most ``MAX_CURVES`` records are drawn; the means are of all that were given.
    """
    figure, axes = style.make_panels(3, narrow=narrow, height=3.1, share_y=False)
    _draw_curves_panel(axes[0], sample, sample.curves)
    _draw_curves_panel(axes[1], sample, sample.fitted)
    axes[1].set_ylim(axes[0].get_ylim())
    _draw_coefficients_panel(axes[2], sample)
    titles = "1 · as recorded", "2 · projected", "3 · rescaled"
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title)
    lines = [_class_line(sample, k) for k in range(len(sample.classes))]
    figure.legend(handles=lines, loc="outside upper left", ncols=2, borderaxespad=0.2)
    return figure


def _class_line(sample: CurveSample, k: int) -> Line2D:
    look = {"color": sample.colours[k], "ls": _LINE_STYLES[k % len(_LINE_STYLES)]}
    return Line2D([], [], lw=2.4, label=f"{sample.classes[k]} (thick: mean)", **look)


def rows_to_draw(sample: CurveSample, k: int) -> NDArray[np.int64]:
    """Return the rows of class ``k`` that are drawn, evenly spread."""
    rows = np.flatnonzero(sample.labels == k)
    count = min(len(rows), MAX_CURVES // len(sample.classes))
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.int64)]


def _draw_curves_panel(ax: Axes, sample: CurveSample, values: data.FloatArray) -> None:
    step = -(-len(sample.grid) // MAX_POINTS)
    for k, colour in enumerate(sample.colours):
        thin = values[rows_to_draw(sample, k)]
        ax.plot(sample.grid[::step], thin[:, ::step].T, color=colour, lw=0.6, alpha=0.3)
    for k in range(len(sample.classes)):
        class_values = values[sample.labels == k]
        if len(class_values):
            line = _class_line(sample, k)
            line.set_data(sample.grid, class_values.mean(axis=0))
            line.set_zorder(4)
            ax.add_line(line)
    ax.set_xlim(*sample.grid[[0, -1]])
    ax.set_xlabel(sample.unit)
    ax.grid(axis="y")


def _draw_coefficients_panel(ax: Axes, sample: CurveSample) -> None:
    d = min(sample.z.shape[1], MAX_COORDINATES)
    width = _STRIP_WIDTH / len(sample.classes)
    for k, colour in enumerate(sample.colours):
        rows = rows_to_draw(sample, k)
        # A golden-ratio sequence spreads the points evenly, with no draw of chance.
        steps = np.arange(len(rows), dtype=np.float64) * _GOLDEN_RATIO
        jitter = np.asarray(0.58 * width * (steps % 1 - 0.5), dtype=np.float64)
        for j in range(d):
            at = j + 1 + width * (k - (len(sample.classes) - 1) / 2)
            values = sample.z[rows, j]
            ax.plot(at + jitter, values, "o", color=colour, ms=3, mew=0, alpha=0.45)
            of_class = sample.z[sample.labels == k, j]
            if len(of_class):
                mean = [float(of_class.mean())] * 2
                ends = [at - 0.45 * width, at + 0.45 * width]
                ax.plot(ends, mean, color=style.PAPER, lw=4.4)
                ax.plot(ends, mean, color=colour, lw=2.6, zorder=4)
    if sample.bounded:
        for edge in (-1, 1):
            ax.axhline(edge, color=style.INK, lw=0.8, ls=(0, (2, 2)))
        ax.set_ylim(-1.08, 1.08)
        ax.set_yticks([-1, -0.5, 0, 0.5, 1])
    ax.set_xticks(range(1, d + 1))
    ax.set_xlim(0.4, d + 0.6)
    more = f" (first {d} of {sample.z.shape[1]})" if d < sample.z.shape[1] else ""
    ax.set_xlabel(f"coordinate{more}")
    ax.grid(axis="y")


MAX_SHOWN = 60
DEGREES = {2: "linear", 3: "quadratic", 4: "cubic"}
_DERIVATIVES = {1: "the derivative", 2: "the second derivative"}
_SAMPLE_WORDS = {
    "volunteers": "Volunteers' {record}s, public by consent.",
    "simulated": "Simulated {record}s: they belong to nobody.",
}


@dataclass(frozen=True, eq=False)
class Curves(data.Section):
    """Sample of records (None: none may be shown), and public facts.

    ``volunteers`` were set aside. ``clipped`` is the share of values outside their
    bounds, known in studies only. ``public`` says what everybody knows.
    """

    sample: CurveSample | None
    volunteers: int
    public: Sequence[str] = ()
    clipped: float | None = None
    record: str = "curve"

    name: ClassVar[str] = "curves"
    place: ClassVar[str] = "data"

    @property
    def alt_text(self) -> str:
        """Description of the three panels."""
        return f"Three panels by class. {self.caption}" if self.sample else ""

    def draw(self, narrow: bool) -> Figure:
        """Draw the records that may be shown."""
        return draw_curves(self.sample, narrow) if self.sample else Figure()

    @property
    def caption(self) -> str:
        """Caption of the figure, or the reason why there is none."""
        sample = self.sample
        if sample is None:
            why = "This pipeline sets no volunteers aside"
            if self.volunteers:
                why = "This report was given no volunteers' records"
            return (
                f"No {self.record}s are shown. {why}, and nobody else's {self.record}"
                " is public: only volunteers' or simulated records may be drawn."
            )
        words = _SAMPLE_WORDS[sample.who].format(record=self.record)
        numbers = f"{sample.z.shape[1]} numbers by {sample.basis} (2)"
        reduced = f"{words} Each client reduces its {self.record} (1) to {numbers}"
        if not sample.bounded:
            return (
                f"{reduced} and scales them by {sample.rescale} (3). What it reports is"
                " the direction in which they lie, so they need no bounds."
            )
        return (
            f"{reduced} and rescales them into [-1, 1] by {sample.rescale} (3). Noise"
            " is added to the numbers in (3) only, so the range between the dashed"
            " lines sets how much of it is needed."
        )

    @property
    def outside(self) -> str:
        """Words for the share of values outside the public bounds."""
        if self.clipped is None:
            return ""
        if self.clipped == 0:
            return "No value lay beyond its bounds."
        lay = f"{data.format_percent(self.clipped, 2)} % of the values lay beyond"
        return f"{lay} their bounds and were clipped to them."


def gather_curves(views: Sequence[RunView], _: pd.DataFrame) -> Curves:
    """Return what the first of these cells shows of its records."""
    view, settings = views[0], views[0].settings
    facts, project = view.metadata("project"), settings.project.model_dump()
    classes = facts["classes"]
    named = f"{classes[1]} (+1) against {classes[0]} (-1)"
    named = ", ".join(classes) if len(classes) > 2 else named
    clipped = None
    # It counts clients' values: neither a release nor a study on an own file tells it.
    if not (settings.production or reads_user_file(settings.source)):
        encoded = view.artifact("project")
        # The clients that all replicates share, or those of the first.
        shared = () in encoded.places("encoded")
        own_parts = [] if shared else [view.columns("project", "encoded", view.place())]
        parts = encoded.pieces("encoded") if shared else own_parts
        counts = [(int(rows["clipped"].sum()), rows["z"].size) for rows in parts]
        outside, every = map(sum, zip(*counts, strict=True))
        clipped = outside / max(every, 1)
    return Curves(
        _record_sample(views),
        settings.clients.public,
        [
            _describe_record(facts),
            f"the basis: {_describe_basis(project, _first_setting_sizes(views))}",
            *_describe_chosen(views),
            f"the rescaling: {_describe_rescale(project)}",
            f"the classes: {named}",
        ],
        clipped,
        sentences.record_word(facts),
    )


def _record_sample(views: Sequence[RunView]) -> CurveSample | None:
    """Return records that may be shown: volunteers' or simulated ones."""
    view, facts = views[0], views[0].metadata("project")
    if view.settings.intake is not None or facts.get("features"):
        return None
    rows, roles = replicate_roles(view, 0)
    if len(roles["public"]):
        source, shown_rows = "volunteers", roles["public"][:MAX_SHOWN]
    elif facts["simulated"]:
        source, shown_rows = "simulated", roles["train"][:MAX_SHOWN]
    else:
        return None
    place, project = view.place(), view.settings.project.model_dump()
    matrix = read_encoding(view, place).projection.matrix
    basis = _describe_basis(project, [project["size"]])
    if len(_first_setting_sizes(views)) > 1:
        basis += f", as for epsilon {view.cell['epsilon']:g}"
    grid, unit = np.asarray(facts["grid"]), facts["unit"]
    if channels := facts.get("channels"):
        width = (grid[1] - grid[0]) * len(grid)
        grid = np.concatenate([grid + k * width for k in range(len(channels))])
        unit += f": {', '.join(channels)}, one behind the other"
    return CurveSample(
        grid=grid,
        unit=unit,
        curves=view.columns("ingest", "clients", place)["curve"][shown_rows],
        fitted=rows["coefficients"][shown_rows] @ np.linalg.pinv(matrix).T,
        z=rows["z"][shown_rows],
        labels=rows["label"][shown_rows],
        classes=Classes(facts["classes"]),
        basis=basis,
        rescale=_describe_rescale(project),
        who=source,
    )


def _describe_basis(project: Mapping[str, Any], sizes: Sequence[Any]) -> str:
    order, size = project["order"], sizes[0]
    if len(sizes) > 1:
        size = f"{', '.join(map(str, sizes[:-1]))} or {sizes[-1]}"
    if project["basis"] == IDENTITY:
        return "the features themselves"
    if project["basis"] == COSINES:
        return f"{size} two-dimensional cosines"
    if project["noise"] is not None:
        return f"{size} numbers at most, by volunteers' evidence"
    if project["basis"] == FPCA:
        return f"{size} principal components of volunteers' curves"
    functions = f"{size} {DEGREES.get(order, f'order-{order}')} B-splines"
    if project["basis"] == "fourier":
        functions = f"{size} Fourier functions"
    which = project.get("derivative", 0)
    return f"{_DERIVATIVES[which]} of {functions}" if which else functions


def _describe_chosen(views: Sequence[RunView]) -> Iterator[str]:
    """Yield a line for each epsilon: what volunteers chose in how many replicates."""
    for view in _first_setting(views):
        if view.settings.project.noise is None:
            continue
        places = map(view.place, range(view.settings.replicates))
        rows = [view.columns("project", "basis_rows", place) for place in places]
        names = Counter(str(columns["basis"][0]) for columns in rows)
        words = ", ".join(f"{name} {n} times" for name, n in names.most_common())
        epsilon = view.cell["epsilon"]
        where = f" at epsilon {epsilon:g}" if epsilon else ""
        yield f"volunteers chose{where}: {words}"


def _first_setting(views: Sequence[RunView]) -> Iterator[RunView]:
    """Yield the runs of the first setting, one for each epsilon."""
    first = views[0].cell
    for view in views:
        if all(view.cell[axis] == first[axis] for axis in ("setting", "protocol")):
            yield view


def _first_setting_sizes(views: Sequence[RunView]) -> list[Any]:
    """Return the sizes of the first setting, which may differ by epsilon."""
    sizes = (view.settings.project.size for view in _first_setting(views))
    return list(dict.fromkeys(sizes))


def _describe_rescale(project: Mapping[str, Any]) -> str:
    names = RESCALING_CONSTANTS[project["rescale"]]
    if project["rescale"] == "min_max" and project.get("bounds", "stated") != "stated":
        return f"min_max (bounds: {project['bounds'].replace('_', ' ')})"
    constants = ", ".join(f"{name} {_format_constant(project[name])}" for name in names)
    return f"{project['rescale']} ({constants})" if constants else project["rescale"]


def _format_constant(value: Any) -> str:
    if isinstance(value, list):
        return "(" + ", ".join(f"{number:g}" for number in value) + ")"
    return f"of the {value}" if isinstance(value, str) else f"{value:g}"


def _describe_record(facts: Mapping[str, Any]) -> str:
    """Return words for the values that a record consists of."""
    features = facts.get("features")
    if features:
        return f"the features: {', '.join(feature['name'] for feature in features)}"
    a, b = facts["domain"]
    points, unit = len(facts["grid"]), facts["unit"]
    words = f"the grid: {points} points from {a:g} to {b:g} ({unit})"
    channels = facts.get("channels")
    return f"{words} for each of {', '.join(channels)}" if channels else words


MAX_FEATURES = 40  # features in a table


@dataclass(frozen=True, eq=False)
class DataSet(data.Section):
    """The card of a data set, and an SVG drawing of each class against its bounds."""

    card: Card
    svg: bytes

    name: ClassVar[str] = "data"
    place: ClassVar[str] = "data"

    @property
    def features(self) -> Sequence[FeatureCard]:
        """The numbers of a record that are listed; an image has too many."""
        return self.card.features[:MAX_FEATURES]

    @property
    def hidden(self) -> int:
        """Number of features that are not listed."""
        return len(self.card.features) - len(self.features)

    @property
    def counts(self) -> str:
        """Number of records of each class, in words."""
        return ", ".join(f"{name} {n:,}" for name, n in self.card.counts.items())


def gather_data_set(views: Sequence[RunView], _: pd.DataFrame) -> DataSet | None:
    """Return the card of a study's data set, if its files are published."""
    view, source = views[0], views[0].settings.source
    dataset, parameters = resolve_source(source)
    hidden = view.settings.production or reads_user_file(source)
    if hidden or not dataset.files(parameters):
        return None
    facts = view.metadata("ingest")
    clients = view.columns("ingest", "clients", view.place())
    root, name = view.project.root, source["name"]
    data_card = make_card(name, parameters, facts, clients, root=root)
    drawings = render_card(data_card, clients, ["svg"])
    return DataSet(data_card, drawings["svg"])
