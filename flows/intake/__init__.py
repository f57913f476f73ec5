"""Intake service over HTTP: processes, answers and metrics."""
