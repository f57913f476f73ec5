"""Stages that all protocols share: ingest, project, and the releases."""
