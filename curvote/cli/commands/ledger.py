"""The command `curvote ledger`: show, check, export, copy and restore a ledger."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from curvote.base import text
from curvote.base.errors import UserError, did_you_mean
from curvote.cli import terminal
from curvote.pipeline.config.project import find_project

if TYPE_CHECKING:
    from curvote.ledger.amounts import Entry
    from curvote.ledger.book import Ledger


LedgerOption = Annotated[
    Path | None,
    typer.Option("--ledger", help="Another ledger (default: the project's)."),
]


def backup(
    file: Annotated[Path, typer.Argument(help="File for the copy.")],
    project: terminal.ProjectOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Copy the ledger and check the copy, also while a run goes on.

    An earlier copy is replaced; only you can read it. Keep it on another disk.
    """
    from curvote.ledger import book

    path = ledger or find_project(project).ledger
    if not path.exists():
        raise UserError(f"there is no ledger {path} yet; the first release begins it.")
    sequence, _ = book.back_up_ledger(path, file)
    typer.echo(f"{file}: {sequence} entries, sound")


def restore(
    file: Annotated[Path, typer.Argument(help="A backup of this project's ledger.")],
    project: terminal.ProjectOption = None,
) -> None:
    """Put a backup in the ledger's place; what it does not know counts as spent.

    That is what stored results, records of runs and the witness file still tell. The
    ledger that was there is set aside, never deleted.
    """
    from curvote.pipeline.release import restore as restoring

    place = find_project(project)
    done = restoring.restore_ledger(place, file)
    for release in done.entered:
        whom = "everybody"
        if release.clients is not None:
            whom = f"{len(release.clients)} clients"
        whom += f" of population {release.population}" if release.population else ""
        typer.echo(f"spent by {whom}: release {release.release} ({release.where})")
    typer.echo(
        f"{place.ledger}: restored; {len(done.entered)} releases were entered anew"
    )
    if done.aside:
        typer.echo(f"the ledger that was there is now {done.aside}")


app = typer.Typer(
    name="ledger",
    help="Show, check and export what was released about whom.",
    no_args_is_help=True,
)

COLUMNS = (
    *("release", "population", "stage", "clients", "epsilon", "delta", "shuffled"),
    "state",
)
# Where servers with a name have released about their records.
SERVER_COLUMNS = ("release", "server", "records", "epsilon", "delta", "state")


@app.command()
def show(
    client: Annotated[str | None, typer.Option(help="Only this client.")] = None,
    population: Annotated[str | None, typer.Option(help="Only this group.")] = None,
    as_json: terminal.Json = False,
    project: terminal.ProjectOption = None,
    ledger: LedgerOption = None,
) -> None:
    """List what was released; for one client, also the sum."""
    if client is not None and population is None:
        raise UserError("--client also needs --population: two groups may use one id.")
    from curvote.messages.amplification import ShuffledGuarantee

    with _open_ledger(project, ledger) or nullcontext() as book:
        entries = _choose_entries(book, population, client)
        caps = book.caps() if book else {}
    # What a release means to whoever sees only the mixed messages of a crowd.
    outsiders = [
        ShuffledGuarantee.from_local(entry.budget, int(entry.facts.get("crowd", 0)))
        for entry in entries
    ]
    rows = [
        {
            "release": entry.release,
            "population": entry.population,
            "state": entry.state,
            "clients": entry.n_clients,
            "server": entry.facts.get("server"),
            "records": entry.n_clients,
            "epsilon": entry.budget.epsilon,
            "delta": entry.budget.delta,
            "cap_epsilon": entry.cap.epsilon if entry.cap else None,
            "cap_delta": entry.cap.delta if entry.cap else None,
            "reserved": entry.reserved,
            "settled": entry.settled,
            "place": entry.place,
            "digest": entry.digest,
            "reason": entry.reason,
            "facts": entry.facts,
            "outside": asdict(outside) if outside else None,
        }
        for entry, outside in zip(entries, outsiders, strict=True)
    ]
    if client is None:
        _print_entries(rows, rows, as_json)
        if not as_json:
            _print_joint_costs(entries)
            for name, cap in caps.items():
                if population in {None, name}:
                    most = f"epsilon {cap.epsilon:g}, delta {cap.delta:g}"
                    typer.echo(f"cap of population {name}: {most} for each client")
        return
    from curvote.ledger.amounts import sum_entries

    epsilon, delta = sum_entries(entries)
    about = {"population": population, "client": client}
    spent = {"epsilon": epsilon, "delta": delta}
    if not rows and not as_json:
        typer.echo(
            f"nothing was released about client {client!r} of population"
            f" {population!r}; check how the id is written."
        )
        return
    _print_entries(rows, about | spent | {"releases": rows}, as_json)
    if not as_json:
        typer.echo(f"total of client {client}: epsilon {epsilon!r}, delta {delta!r}")


@app.command()
def check(project: terminal.ProjectOption = None, ledger: LedgerOption = None) -> None:
    """Check the ledger, and that no stored release is missing in it; exit 1 if so.

    A ledger named by --ledger is checked alone; so is your own, without a project.
    """
    from curvote.pipeline.release.evidence import ledger_problems

    ledger = _ledger_path(project, ledger)
    with _open_ledger(project, ledger) or nullcontext() as book:
        if ledger is None:
            problems = ledger_problems(find_project(project))
        else:
            problems = book.problems() if book else []
        releases, clients = book.count_releases() if book else (0, 0)
    for line in problems:
        typer.echo(line)
    if problems:
        raise typer.Exit(1)
    typer.echo(
        f"sound: {releases} {'release' if releases == 1 else 'releases'},"
        f" {clients} clients"
    )


@app.command()
def export(
    out: Annotated[
        Path | None, typer.Option(help="File to write (default: the terminal).")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", help="csv, parquet or json (default: by --out)."),
    ] = None,
    project: terminal.ProjectOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Write one row for each client and release."""
    from curvote.base import validate
    from curvote.ledger import export

    ending = out.suffix.removeprefix(".") if out else ""
    kind = kind or (ending if ending in export.WRITERS else "csv")
    validate.one_of(export.WRITERS, format=kind)
    if kind == "parquet" and out is None:
        raise UserError("--format parquet needs --out: a terminal cannot show it.")
    with _open_ledger(project, ledger) or nullcontext() as book:
        export.export_ledger(book, kind, out)


class _RaiseCap(terminal.RespelledCommand):
    former = MappingProxyType({"--epsilon": "--cap", "--delta": "--cap-delta"})


@app.command("raise-cap", cls=_RaiseCap)
def raise_cap(
    population: Annotated[str, typer.Argument(help="A group: see `ledger show`.")],
    *,
    cap: Annotated[float, typer.Option(help="The new cap: the most epsilon.")],
    cap_delta: Annotated[
        float | None, typer.Option(help="The most delta (default: as before).")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing.")] = False,
    project: terminal.ProjectOption = None,
    ledger: LedgerOption = None,
) -> None:
    """Allow more to be released about each client of a population, for good.

    This releases nothing; the ledger records when it was done.
    """
    from curvote.base.privacy import Budget, refuse_delta

    with _open_ledger(project, ledger) or nullcontext() as book:
        before = book.cap(population) if book else None
        if book is None or before is None:
            populations = {e.population for e in book.entries()} if book else ()
            hint = did_you_mean(population, populations) if populations else ""
            raise UserError(
                f"population {population!r} has no cap yet; its first release sets the"
                f" one of pipelines.yaml.{hint}"
            )
        delta = before.delta if cap_delta is None else cap_delta
        after = Budget(cap, refuse_delta(delta))
        clients = book.count_spenders(population)
        typer.echo(
            f"The cap of population {population} goes from {before} to {after}, for"
            f" good: about each of its {clients} clients so much may be released that"
            " an observer's odds on anything about one person change by a factor of"
            f" e^{after.epsilon:g} instead of e^{before.epsilon:g}."
        )
        if not yes:
            if not _is_on_terminal():
                raise UserError("nobody is here to be asked; --yes agrees beforehand.")
            typer.confirm("Raise it?", abort=True)
        book.raise_cap(population, after)
    typer.echo(f"the cap of {population} is {after}")


app.command()(backup)
app.command()(restore)


def _is_on_terminal() -> bool:
    return sys.stdin.isatty()


def _ledger_path(project: Path | None, path: Path | None) -> Path | None:
    """Return the ledger that was named, or outside a project the user's own."""
    from curvote.ledger import places

    with suppress(UserError):
        find_project(project)
        return path
    user_ledger = places.ledger_path()
    if path or project or not user_ledger.exists():
        return path
    typer.echo(f"no project here, so your own ledger is read: {user_ledger}", err=True)
    return user_ledger


def _open_ledger(project: Path | None, path: Path | None) -> Ledger | None:
    """Open the chosen ledger; None: the project has released nothing yet.

    Outside of a project that is the user's own, of `curvote client`.
    """
    from curvote.ledger.book import open_existing

    path = _ledger_path(project, path)
    book = open_existing(path or find_project(project).ledger)
    if path and book is None:
        raise UserError(f"--ledger {path}: there is no such file; check the path.")
    return book


def _choose_entries(
    book: Ledger | None, population: str | None, client: str | None
) -> list[Entry]:
    if book is None:
        return []
    populations = {entry.population for entry in book.entries()}
    if population is not None and population not in populations:
        raise UserError(
            f"--population {population!r} has no release."
            f"{did_you_mean(population, populations)}"
        )
    if client is None or population is None:
        return book.entries(population)
    ids = (client, str(text.id_number(client)))  # as texts of a table are kept
    return next(filter(None, (book.releases_of(population, i) for i in ids)), [])


def _print_entries(
    rows: Sequence[dict[str, Any]], document: Any, as_json: bool
) -> None:
    if as_json:
        terminal.print_json(document)
        return
    if not rows:
        typer.echo("nothing was released yet")
        return
    from curvote.messages.amplification import OUTSIDER, ShuffledGuarantee

    columns = SERVER_COLUMNS if all(row["server"] for row in rows) else COLUMNS
    short = []
    for row in rows:
        outside = str(ShuffledGuarantee(**row["outside"])) if row["outside"] else ""
        facts = {"stage": row["facts"].get("stage", ""), "shuffled": outside}
        short.append(row | {"release": row["release"][:12]} | facts)
    terminal.print_rows(short, (*columns, "reserved"))
    if any(row["outside"] for row in rows):
        typer.echo(f"shuffled: epsilon (delta) for {OUTSIDER}")


def _print_joint_costs(entries: Sequence[Entry]) -> None:
    """Print the joint cost of several releases of one server for a record."""
    from curvote.base.accounting import compose_releases

    counting = [entry for entry in entries if entry.counts and "server" in entry.facts]
    for server in dict.fromkeys(str(entry.facts["server"]) for entry in counting):
        releases = [entry for entry in counting if entry.facts["server"] == server]
        if len(releases) == 1:
            continue
        rhos = [float(e.facts["rho"]) if "rho" in e.facts else None for e in releases]
        budgets = [entry.budget for entry in releases]
        cost = compose_releases(zip(budgets, rhos, strict=True))
        plain = sum(budget.epsilon for budget in budgets)
        typer.echo(
            f"{len(releases)} releases of {server} cost a record that is in all of them"
            f" epsilon {cost.epsilon:.3g}, delta {cost.delta:.3g} together; caps count"
            f" the sum, epsilon {plain:g}"
        )
