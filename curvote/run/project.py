"""Where a project keeps its things."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from curvote.errors import UserError

PIPELINES = "pipelines.yaml"
# Those that curvote brings, for a folder that has none of its own.
_STARTER = Path(str(files("curvote.run") / PIPELINES))


@dataclass(frozen=True)
class Project:
    """The folder that holds pipelines.yaml, and the places below its data/.

    A folder without that file has curvote's own pipelines, the ``starter`` ones.
    """

    root: Path
    starter: bool = False

    @property
    def pipelines_file(self) -> Path:
        """The configuration of every pipeline."""
        own = self.root / PIPELINES
        return _STARTER if self.starter and not own.is_file() else own

    @property
    def raw(self) -> Path:
        """Files as their publishers made them."""
        return self.root / "data" / "raw"

    @property
    def artifacts(self) -> Path:
        """The store of what the server's side may read: noised messages and on."""
        return self.root / "data" / "artifacts"

    @property
    def clients(self) -> Path:
        """The store of what only the clients' side may read; its owner's alone."""
        return self.root / "data" / "clients"

    @property
    def stores(self) -> tuple[Path, Path]:
        """Both roots of the store, for whoever walks all of it."""
        return self.clients, self.artifacts

    def place_of(self, side: str) -> Path:
        """Return the root for tables of a side of the trust boundary (`Stage.side`)."""
        return self.clients if is_raw(side) else self.artifacts

    @property
    def state(self) -> Path:
        """Run records, MLflow's and Prefect's databases."""
        return self.root / "data" / "state"

    @property
    def digest_key(self) -> Path:
        """The key of whatever is told of a private file's digest (`run.keyed`)."""
        return self.state / "digest.key"

    @property
    def ledger(self) -> Path:
        """What was released about the clients whose data are here."""
        return self.state / "ledger.sqlite"

    @property
    def intake(self) -> Path:
        """Rounds of envelopes: invitations, and what was accepted."""
        return self.state / "intake.sqlite"

    def inbox(self, pipeline: str) -> Path:
        """Where envelopes arrive."""
        return self.root / "data" / "inbox" / pipeline

    def quarantine(self, pipeline: str) -> Path:
        """Where refused envelopes are kept, each with the reason."""
        return self.root / "data" / "quarantine" / pipeline

    def published(self, pipeline: str) -> Path:
        """The tasks and invitations of the rounds of a pipeline."""
        return self.root / "data" / "published" / pipeline

    @property
    def reports(self) -> Path:
        """The latest report of each pipeline."""
        return self.root / "data" / "reports"


def is_raw(side: str) -> bool:
    """Say whether what a stage stores never leaves the clients' side.

    "client" and "client (study)" compute on records without noise; "client -> server"
    stores the noised messages only.
    """
    return side in ("client", "client (study)")


def find_project(start: Path | None = None, *, starter: bool = False) -> Project:
    """Return the nearest parent folder of ``start`` that holds a pipelines.yaml.

    Where none does, a folder in which the starter pipelines have run is taken, and with
    ``starter`` the folder itself, as it is.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / PIPELINES).is_file():
            return Project(folder)
    begun = Project(here, starter=True)
    if begun.state.is_dir() or (starter and here.is_dir()):
        return begun
    raise UserError(
        f"no {PIPELINES} in {here} or any folder above it; go to your project's folder"
        " or name it with --project. `curvote init` begins a project here."
    )
