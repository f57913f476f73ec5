"""What is known of a model around the records of a setting, whatever the noise."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from curvote.errors import InternalError
from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu.studies import STUDIES, Study, fitted, question
from curvote.run.project import Project
from curvote.utility.engines.base import Question, Surface
from curvote.utility.engines.choosing import engine_for
from curvote.utility.robustness.box import Box, box
from curvote.validate import FloatArray


@dataclass(frozen=True)
class Known:
    """Records and model as a question, their surface and their box."""

    question: Question
    surface: Surface
    box: Box

    @property
    def values(self) -> FloatArray:
        """The sensitive values of the records, (n, s)."""
        return self.question.values


def project_of(name: str, found: Evidence | None) -> Project:
    """Return where the tables of reproduction ``name`` are found."""
    if found is None or found.project is None:
        raise InternalError(f"{name} reads published files: it needs a project")
    return found.project


@lru_cache(maxsize=4)
def known_of(project: Project, name: str, setting: str) -> Known:
    """Return what is known of the model ``name`` ("stroke-logistic") around records.

    ``setting`` names them as `settings.of` and "age 79" do.
    """
    study, records, model = _model(project, name)
    return know(study, model, study.chosen(records, setting))


@lru_cache(maxsize=4)
def _model(project: Project, name: str) -> tuple[Study, FloatArray, Any]:
    table, _, kind = name.partition("-")
    study = STUDIES[table]
    records, labels = study.read(project)
    return study, records, fitted(kind, records, labels)


def know(study: Study, model: Any, records: FloatArray) -> Known:
    """Return the surface and the box of a model around records (n, D)."""
    asked = question(study, model, records)
    made = surface(asked)
    return Known(asked, made, box(made, asked.values, bounds=asked.bounds))


def surface(asked: Question) -> Surface:
    """Return what the engine knows that reads the model."""
    engine, _ = engine_for(asked)
    return engine.surface(asked)
