"""Verbs of `auto`: expectations before anybody reports."""

COMMANDS = {"advise": "curvote.theory.advise_command:advise"}
