"""The verbs of `auto`: what to expect of it, before anybody reports."""

COMMANDS = {"advise": "curvote.theory.advise_command:advise"}
