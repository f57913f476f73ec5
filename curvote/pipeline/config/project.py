"""Project folder: pipelines.yaml, and the places below its data folder."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from curvote.base.errors import UserError

PIPELINES = "pipelines.yaml"
# Those that curvote brings, for a folder that has none of its own.
_STARTER_FILE = Path(str(files("curvote.pipeline") / PIPELINES))


@dataclass(frozen=True)
class Project:
    """The folder that holds pipelines.yaml, and the places below its data/.

    A folder without that file has curvote's own pipelines, the ``starter`` ones.
    """

    root: Path
    starter: bool = False

    @property
    def pipelines_file(self) -> Path:
        """The path of pipelines.yaml, or of curvote's own for a folder without one."""
        project_file = self.root / PIPELINES
        return (
            _STARTER_FILE
            if self.starter and not project_file.is_file()
            else project_file
        )

    @property
    def raw(self) -> Path:
        """The folder of raw files, as their publishers made them."""
        return self.root / "data" / "raw"

    @property
    def artifacts(self) -> Path:
        """The store of what the server's side may read."""
        return self.root / "data" / "artifacts"

    @property
    def clients(self) -> Path:
        """The store of what only the clients' side may read."""
        return self.root / "data" / "clients"

    @property
    def stores(self) -> tuple[Path, Path]:
        """Both roots of the store."""
        return self.clients, self.artifacts

    @property
    def state(self) -> Path:
        """The folder of run records and of MLflow's and Prefect's databases."""
        return self.root / "data" / "state"

    @property
    def digest_key(self) -> Path:
        """The key for digests of private files (`keyed_digest`)."""
        return self.state / "digest.key"

    @property
    def ledger(self) -> Path:
        """The ledger of releases about clients whose data are here."""
        return self.state / "ledger.sqlite"

    @property
    def intake(self) -> Path:
        """The database of envelope rounds: invitations and accepted envelopes."""
        return self.state / "intake.sqlite"

    def inbox(self, pipeline: str) -> Path:
        """Return the folder in which envelopes arrive."""
        return self.root / "data" / "inbox" / pipeline

    def quarantine(self, pipeline: str) -> Path:
        """Return the folder of refused envelopes, each with its reason."""
        return self.root / "data" / "quarantine" / pipeline

    def published(self, pipeline: str) -> Path:
        """Return the folder of a pipeline's tasks and invitations."""
        return self.root / "data" / "published" / pipeline

    @property
    def reports(self) -> Path:
        """The folder of reports, with the latest one of each pipeline."""
        return self.root / "data" / "reports"


def is_client_side(side: str) -> bool:
    """Return whether tables of a side never leave the clients' side.

    "client" and "client (study)" compute on records without noise; "client -> server"
    stores the noised messages only.
    """
    return side in ("client", "client (study)")


def find_project(start: Path | None = None, *, starter: bool = False) -> Project:
    """Return the project of the nearest parent folder with a pipelines.yaml.

    Where none does, a folder in which the starter pipelines have run is taken, and with
    ``starter`` the folder itself, as it is.
    """
    folder_path = (start or Path.cwd()).resolve()
    for folder in (folder_path, *folder_path.parents):
        if (folder / PIPELINES).is_file():
            return Project(folder)
    candidate = Project(folder_path, starter=True)
    if candidate.state.is_dir() or (starter and folder_path.is_dir()):
        return candidate
    raise UserError(
        f"no {PIPELINES} in {folder_path} or any folder above it; go to your project's"
        " folder"
        " or name it with --project. `curvote init` begins a project here."
    )
