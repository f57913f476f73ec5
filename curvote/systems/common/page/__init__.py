"""Sections of a run's page that several systems share."""
