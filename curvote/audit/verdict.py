"""Verdicts on subjects: every check on each, one row with its findings."""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from curvote.audit import release_checks
from curvote.audit.release import Memo, Release, check_reruns
from curvote.base.entropy import SeededEntropy
from curvote.base.privacy import Budget
from curvote.checks import loss_checks, residuals, word_checks
from curvote.checks.subject import BROKEN, Findings, Loss, Row, Subject, ratio_text

# Round numbers, and ln 2 and ln 3: what documentation and papers name.
TYPED: tuple[float, ...] = (
    *(0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 1.0, 1.1, 1.2, 1.25),
    *(1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(0.6931471805599453, 1.0986122886681098),
)
# Half the noise shows in so many at each; tables have fewer.
CLIENTS, TABLES = 2000, 60
SWEEP_ALPHA = 1e-10


@dataclass(frozen=True, eq=False)
class EpsilonSweep:
    """A subject at each epsilon of ``TYPED``; the budget is the largest."""

    name: str
    make_subject: Callable[[float], Subject]
    budget: Budget
    params: Mapping[str, Any]


def check_sweep(subject: EpsilonSweep, samples: int, seed: int) -> Findings:
    """Compare draws and loss with the declared law at each epsilon."""
    findings: Findings = {"exact": None, "levels": None}
    for epsilon in TYPED:
        level = subject.make_subject(epsilon)
        checks = {"exact": loss_checks.check_declared_loss(level, level.loss())}
        if samples:
            rng, entropy = np.random.default_rng(seed), SeededEntropy(seed)
            many = level.many(CLIENTS if level.batched else TABLES, rng)
            drawn_residuals = level.residuals(many, level.send(many, entropy), rng)
            if drawn_residuals is not None:
                gap = residuals.uniformity_gap(drawn_residuals, SWEEP_ALPHA)
                checks["levels"] = gap
        faults = {name: why for name, why in checks.items() if why}
        findings |= {name: f"at {epsilon:g}: {why}" for name, why in faults.items()}
    return findings


SEED = 20240801
SAMPLES = 300_000
CONFIDENCE = 0.999999
# Outputs of more numbers are drawn for fewer clients.
NARROW = 6
# Error rate of each check of inputs from everywhere.
ALPHA = 1e-8
MOST_PAIRS = 6


Audited = Subject | Memo | Release | EpsilonSweep


class _Evidence(NamedTuple):
    findings: Findings
    bound: float | None = None
    loss: Loss | None = None


def run(*subjects: Audited, samples: int = SAMPLES, seed: int = SEED) -> list[Row]:
    """Return a row for each subject, in order.

    ``samples`` draws are made for each input that is tried; 0 leaves out all that needs
    draws. A sound subject is called violated with probability 1e-6 at most. One seed
    gives one bound; only the check of independence asks the operating system.
    """
    return [examine(subject, samples, seed) for subject in subjects]


def run_parallel(
    jobs: Sequence[tuple[Audited, int]], seed: int, workers: int
) -> Iterator[Row]:
    """Yield the rows of (subject, samples) in order, by several processes."""
    from joblib import Parallel, delayed

    todo = (delayed(examine)(subject, samples, seed) for subject, samples in jobs)
    yield from Parallel(n_jobs=workers, return_as="generator")(todo)


def examine(subject: Audited, samples: int, seed: int) -> Row:
    """Return the row of one subject."""
    if isinstance(subject, EpsilonSweep):
        evidence = _Evidence(check_sweep(subject, samples, seed))
    elif isinstance(subject, Memo):
        why = check_reruns(subject.release(seed), subject.truth, subject.budget)
        evidence = _Evidence({"reruns": why})
    elif isinstance(subject, Release):
        with closing(subject):
            checks = release_checks.named_checks(subject, samples).items()
            faults = {name: check(subject, seed) for name, check in checks}
        evidence = _Evidence(faults)
    else:
        evidence = _examine_subject(subject, samples, seed)
    findings, bound, loss = evidence
    caught = tuple(name for name, why in findings.items() if why is not None)
    verdicts = ("caught", "missed")
    if not subject.name.startswith(BROKEN):
        verdicts = ("violated", "pass")
    return Row(
        mechanism=subject.name,
        params=subject.row_params if isinstance(subject, Subject) else subject.params,
        claimed=subject.budget.epsilon,
        delta=subject.budget.delta,
        exact=loss.log if loss else None,
        exact_ratio=ratio_text(loss.ratio) if loss else None,
        lower_bound=bound,
        confidence=None if bound is None else CONFIDENCE,
        verdict=verdicts[0] if caught else verdicts[1],
        checks={n: f"violated: {why}" if why else "ok" for n, why in findings.items()},
        caught_by=caught,
        seed=seed,
    )


def _examine_subject(subject: Subject, samples: int, seed: int) -> _Evidence:
    loss = subject.loss()
    findings: Findings = {
        "exact": loss_checks.check_declared_loss(subject, loss),
        **subject.own_checks(),
        "inputs": word_checks.check_odd_inputs(subject, seed),
        "answers": word_checks.check_answers(subject),
    }
    if not samples:
        return _Evidence(findings, loss=loss)
    pairs = draw_pairs(subject, samples, seed)
    # Half of the error rate for the bound, a quarter for each of the other two.
    share = (1 - CONFIDENCE) / 4
    bound, event = loss_checks.lower_bound(subject, pairs, 2 * share)
    x, outputs = pairs[0].x, pairs[0].outputs
    findings |= {
        "statistical": loss_checks.check_lower_bound(subject, bound, event),
        "support": loss_checks.check_support(subject, pairs),
        "law": loss_checks.check_law(subject, pairs, share),
        "independence": word_checks.check_independence(subject, x, outputs, share),
        "work": word_checks.check_word_counts(subject, seed),
    }
    # From here on inputs from everywhere.
    streams = _seed_streams(subject, seed)
    rng, entropy = np.random.default_rng(streams), SeededEntropy(streams.spawn(1)[0])
    width = subject.view(subject.send(subject.many(1, rng), entropy)).shape[1]
    clients = subject.many(min(2 * samples, subject.crowd[width > NARROW]), rng)
    drawn_residuals = subject.residuals(clients, subject.send(clients, entropy), rng)
    if subject.batched:
        why = residuals.check_batches(subject, samples, entropy, rng, ALPHA)
        findings["batches"] = why
    if drawn_residuals is not None:
        places, some = subject.places(clients), drawn_residuals[: residuals.MOST_ROWS]
        findings |= {
            "interior": residuals.check_interior(places, drawn_residuals, ALPHA),
            "lags": residuals.check_lags(some),
        }
    return _Evidence(findings, bound, loss)


def _seed_streams(subject: Subject, seed: int) -> np.random.SeedSequence:
    label = f"{subject.name} {subject.budget.epsilon!r}".encode()
    return np.random.SeedSequence([seed, zlib.crc32(label)])


def draw_pairs(subject: Subject, samples: int, seed: int) -> list[loss_checks.Pair]:
    """Return pairs of inputs with ``samples`` draws each, the worst first.

    The words come from a stream named by the seed and the subject's name and epsilon.
    """
    streams = _seed_streams(subject, seed)
    inputs = subject.inputs(np.random.default_rng(streams.spawn(1)[0]))
    entropy = SeededEntropy(streams.spawn(1)[0])
    width = subject.view(subject.draw(inputs[0], 1, SeededEntropy(seed))).shape[1]
    n = min(samples, subject.most_numbers // width)
    outputs = [subject.draw(x, n, entropy) for x in inputs]
    together = list(zip(inputs, outputs, strict=True))
    pairs = list(combinations(together, 2))[:MOST_PAIRS]
    return [loss_checks.Pair.of(subject, *pair) for pair in pairs]


INK, MUTED, LINE = "#22262b", "#6a717b", "#e2e5e9"
GOOD, BAD, PROVED = "#009e73", "#d55e00", "#0072b2"
RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "text.color": INK,
    "text.parse_math": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.labelcolor": MUTED,
    "axes.edgecolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": MUTED,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "curvote",
}
ROW_INCHES = 0.17
LEAST = 0.05


def write_figure(rows: Sequence[Row], folder: Path) -> list[Path]:
    """Write audit.json, audit.svg and audit.png to ``folder``; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / "audit.json"
    text = json.dumps([row.to_json() for row in rows], indent=1)
    table.write_text(text + "\n", encoding="utf-8")
    return [table, *_draw_rows(rows, folder)]


def _draw_rows(rows: Sequence[Row], folder: Path) -> list[Path]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Panels of shipped ones by epsilon, then of the broken twins, in a column each.
    groups: dict[str, list[Row]] = {}
    drawn_rows = [row for row in rows if row.lower_bound is not None]
    for row in sorted(drawn_rows, key=lambda row: row.broken):
        kind = "broken on purpose" if row.broken else "shipped"
        groups.setdefault(f"{kind}, epsilon {row.claimed:g}", []).append(row)
    if not groups:
        return []
    sides = groupby(groups.values(), key=lambda group: group[0].broken)
    columns = [[len(group) for group in side] for _, side in sides]
    tallest = max(ROW_INCHES * sum(sizes) + 0.8 * len(sizes) for sizes in columns)
    paths = [folder / "audit.svg", folder / "audit.png"]
    with mpl.rc_context(RC):
        size = 5.6 * len(columns), tallest + 0.7
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.add_gridspec(1, len(columns))
        axes: list[Any] = []
        for i, sizes in enumerate(columns):
            ratios = [n + 2 for n in sizes]
            column = grid[i].subgridspec(len(sizes), 1, height_ratios=ratios)
            axes += [figure.add_subplot(column[j]) for j in range(len(sizes))]
        for ax, (title, group) in zip(axes, groups.items(), strict=True):
            worst = attrgetter("lower_bound", "mechanism")
            _draw_panel(ax, title, sorted(group, key=worst))
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2)
        for path in paths:
            date = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=160, metadata=date)
    return paths


def _draw_panel(ax: Any, title: str, rows: Sequence[Row]) -> None:
    places = range(len(rows))
    claimed, broken = rows[0].claimed, rows[0].broken
    proved = [max(row.lower_bound or 0.0, LEAST if broken else 0.0) for row in rows]
    ax.axvline(claimed, color=INK, lw=1, label="claimed", zorder=1)
    ax.hlines(places, 0, proved, color=LINE, lw=1, zorder=0)
    declared = {"marker": "|", "s": 60, "color": GOOD}
    ax.scatter([r.exact for r in rows], places, **declared, label="loss of the law")
    above = [bound > claimed for bound in proved]
    colours = [BAD if over else PROVED for over in above]
    ax.scatter(proved, places, s=14, c=colours, zorder=3)
    ax.scatter([], [], s=14, color=PROVED, label="proved by draws")
    ax.scatter([], [], s=14, color=BAD, label="proved by draws, above the claim")
    ax.set_ylim(-0.7, len(rows) - 0.3)
    ax.set_yticks(places, [row.mechanism.removeprefix(BROKEN) for row in rows])
    side = ax.get_yaxis_transform()
    for i, (label, row) in enumerate(zip(ax.get_yticklabels(), rows, strict=True)):
        label.set_color(INK if row.good else BAD)
        if row.caught_by:
            style = {"transform": side, "va": "center", "color": MUTED, "size": 6.5}
            ax.text(1.02, i, ", ".join(row.caught_by), **style)
    most = max(proved)
    if broken:
        ax.set_xscale("log")
        ax.set_xlim(LEAST, max(most, claimed) * 1.3)
        ticks = [claimed * 2**k for k in range(-2, 6, 2) if claimed * 2**k < most * 1.3]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
        ax.set_xticks([], minor=True)
        ax.set_xlabel("epsilon (logarithmic)")
    else:
        ax.set_xlim(0, max(most, claimed) * 1.1)
        ax.set_xlabel("epsilon")
    ax.set_title(title)
