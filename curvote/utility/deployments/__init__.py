"""Deployments of noise on a record."""
