"""Names of the data sets; adding one is one file and one line here."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from curvote import validate

DATASETS = {
    "simulated": "curvote.datasets.simulated",
    "uniform": "curvote.datasets.uniform",
    "simulated_servers": "curvote.datasets.simulated_servers",
    "drifting": "curvote.datasets.drifting",
    "phonemes": "curvote.datasets.phonemes",
    "heart": "curvote.datasets.heart",
    "stroke": "curvote.datasets.stroke",
    "churn": "curvote.datasets.churn",
    "diabetes": "curvote.datasets.diabetes",
    "employee": "curvote.datasets.employee",
    "nhanes": "curvote.datasets.nhanes",
    "nhanes-2003": "curvote.datasets.nhanes_2003",
    "mnist": "curvote.datasets.mnist",
    "zip": "curvote.datasets.zipcode",
    "table": "curvote.datasets.table",
    "curves": "curvote.datasets.curves",
    "remote": "curvote.datasets.remote",
}


def module(name: str) -> ModuleType:
    """Return the module of data set ``name``; an unknown name is a UserError."""
    return import_module(DATASETS[validate.one_of(DATASETS, source=name)])
