"""Verbs of `auto`: expectations before anybody reports."""

COMMANDS = {"advise": "curvote.advise.command:advise"}
