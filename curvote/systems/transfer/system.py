"""Systems `transfer` and `transfer_clean`: settings, stages, and audited tasks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from curvote.chain import axis, stage, system
from curvote.chain.settings import Strict
from curvote.systems.common import declarations
from curvote.systems.common.settings import Representation
from curvote.systems.transfer import measures, messages, stages
from curvote.systems.transfer import settings as stated_settings
from curvote.systems.transfer.method.task import ASKS, Task
from curvote.systems.transfer.settings import Settings


def audit_tasks(
    settings: axis.PipelineSettings, read: Callable[[str], stage.Metadata]
) -> Iterator[Task]:
    """Yield the task of each server that adds noise, at each epsilon."""
    public, values = read("project"), settings.model_dump(mode="json")
    for epsilon in settings.epsilon:
        levels = stated_settings.normalize(values | {"epsilon": epsilon})["told"]
        every = stated_settings.build_task(public, levels, values)
        for name, level in every.servers.items():
            if level.noised:
                yield every.for_server(name)


_STAGES = "curvote.systems.transfer.stages"
_AXES = ("epsilon",)
_ALLOCATION = stated_settings.ALLOCATION_SETTINGS
_PLUGINS = (
    ("curvote.systems.transfer.method.task:FORMS", "transfer.release"),
    declarations.DATASETS,
)


SERVER = axis.Axis("server", stated_settings.axis_servers, key="transfer.servers")

_PRIVATIZE = stage.Stage(
    "privatize",
    f"{_STAGES}:privatize",
    inputs=("project",),
    axes=("epsilon", "server"),
    params=(*("asked", "server", "held_out", "fault"), *(*_ALLOCATION, "replicates")),
    plugins=_PLUGINS,
    tables=(measures.RELEASES,),
    side="client -> server",
)
_AGGREGATE = stage.Stage(
    "aggregate",
    f"{_STAGES}:aggregate",
    inputs=("project", "privatize@server"),
    axes=_AXES,
    params=(*stages.PARAMS, "replicates"),
    plugins=_PLUGINS,
    tables=(measures.WEIGHTS,),
    side="server",
)
_RELEASED = replace(
    _PRIVATIZE,
    params=("asked", "server", "columns", "project", "seed", "protocol"),
    message=ASKS,
    collected=f"{_STAGES}:collected",
)
# Whoever is the target: nobody releases anything anew.
_COMBINED = replace(_AGGREGATE, params=(*_AGGREGATE.params, "transfer.target"))
_SCORE = declarations.score_stage(
    f"{_STAGES}:report",
    ("project", "privatize@server", "aggregate"),
    _AXES,
    (*stages.PARAMS, *_ALLOCATION, "transfer.test", "replicates"),
    plugins=_PLUGINS,
)


_CROSSED = stage.Stage(
    "crossed",
    f"{_STAGES}:crossed",
    inputs=("project", "privatize@server"),
    axes=_AXES,
    params=(*stages.PARAMS, *_ALLOCATION, "transfer.test", "replicates"),
    plugins=_PLUGINS,
    tables=(measures.CROSSED,),
    side="client (study)",
    # The train-test matrix is made at one epsilon.
    when=lambda settings, values: settings.transfer.matrix == values["epsilon"],
)
_PAGE = "curvote.systems.transfer"

SYSTEM = system.System(
    name="transfer",
    settings=Settings,
    stages=(
        declarations.INGEST,
        declarations.PROJECT,
        _PRIVATIZE,
        _AGGREGATE,
        _SCORE,
        _CROSSED,
    ),
    production=(declarations.INGEST, declarations.PROJECT, _RELEASED, _COMBINED),
    axes=(axis.EPSILON, SERVER),
    messages=messages.MESSAGES_BY_SYSTEM["transfer"],
    audit_tasks=audit_tasks,
    metrics=measures.METRICS,
    methods=measures.METHODS,
    main=tuple(method.name for method in measures.METHODS),
    checks=stated_settings.check_settings,
    resolve_parts=stated_settings.resolve_parts,
    normalize=stated_settings.normalize,
    shorthand=("release", "params", "weights", "decide", "matrix"),
    final_model=stages.final_model,
    sections=(
        declarations.DATA_SET,
        f"{_PAGE}.page:gather_measures",
        f"{_PAGE}.page:gather_crossed",
        f"{_PAGE}.page:gather_weights",
        f"{_PAGE}.page:gather_releases",
        f"{_PAGE}.page:gather_worth",
    ),
)


class CleanSettings(Strict):
    """Who holds which records; there is no epsilon."""

    clients: stated_settings.Volunteers = stated_settings.Volunteers()
    project: Representation = stated_settings.DEFAULT_PROJECT
    transfer: stated_settings.Dealt = stated_settings.Dealt()


_SCORE_CLEAN = declarations.score_stage(
    f"{_STAGES}:report_clean",
    ("project",),
    axes=(),
    params=(*_ALLOCATION, "target", "transfer.test", "replicates"),
    plugins=(declarations.DATASETS,),
    libraries=("scikit-learn",),
)


def describe_records(
    config: Mapping[str, Any], d: int
) -> list[system.MessageDescription]:
    """Return the description of a request for everything."""
    what = f"{d} numbers and the class of every record, as they are"
    return [
        system.MessageDescription(
            "each server", what, "none", epsilon="no privacy", party="server"
        )
    ]


def normalize_clean(values: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with target and server names filled in."""
    sections = values["source"], values["transfer"]
    return values | {
        "target": stated_settings.target_name(*sections),
        "names": stated_settings.server_names(*sections),
    }


# No model is kept: it would be fitted on what no server ever sends.
_CLEAN = system.System(
    name="transfer_clean",
    settings=CleanSettings,
    stages=(declarations.INGEST, declarations.PROJECT, _SCORE_CLEAN),
    axes=(),
    x=axis.EPSILON,
    study_messages=(describe_records,),
    metrics=measures.METRICS,
    methods=measures.CLEAN_METHODS,
    main=tuple(method.name for method in measures.CLEAN_METHODS),
    checks=stated_settings.check_servers,
    normalize=normalize_clean,
)

SYSTEMS: Final = (SYSTEM, _CLEAN)
