"""Robustness of a model around the records of a setting: surface and box."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from curvote.errors import InternalError
from curvote.reproduce.gather import Evidence
from curvote.reproduce.qcu.studies import STUDIES, Study, fit_model, study_question
from curvote.run.project import Project
from curvote.utility.engines.base import Question, Surface
from curvote.utility.engines.choosing import choose_engine
from curvote.utility.robustness.box import Box, certify_box
from curvote.validate import FloatArray


@dataclass(frozen=True)
class RobustModel:
    """Records and model as a question, with its surface and box."""

    question: Question
    surface: Surface
    box: Box

    @property
    def values(self) -> FloatArray:
        """The sensitive values of the records, (n, s)."""
        return self.question.values


def evidence_project(name: str, evidence: Evidence | None) -> Project:
    """Return the project that holds the tables of ``name``."""
    if evidence is None or evidence.project is None:
        raise InternalError(f"{name} reads published files: it needs a project")
    return evidence.project


@lru_cache(maxsize=4)
def analyze_setting(project: Project, name: str, setting: str) -> RobustModel:
    """Return the surface and box of ``name`` around a setting's records.

    ``setting`` names them as `settings.record_group` and "age 79" do.
    """
    study, records, model = _fitted_model(project, name)
    return analyze(study, model, study.setting_records(records, setting))


@lru_cache(maxsize=4)
def _fitted_model(project: Project, name: str) -> tuple[Study, FloatArray, Any]:
    table, _, kind = name.partition("-")
    study = STUDIES[table]
    records, labels = study.read(project)
    return study, records, fit_model(kind, records, labels)


def analyze(study: Study, model: Any, records: FloatArray) -> RobustModel:
    """Return the surface and the box of a model around records (n, D)."""
    query = study_question(study, model, records)
    model_surface = answer_surface(query)
    return RobustModel(
        query,
        model_surface,
        certify_box(model_surface, query.values, bounds=query.bounds),
    )


def answer_surface(query: Question) -> Surface:
    """Return the answer surface that the engine reads from the model."""
    engine, _ = choose_engine(query)
    return engine.surface(query)
