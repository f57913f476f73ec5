"""The verbs of transfer: what a source would add, before anybody is asked."""

COMMANDS = {"advise": "curvote.transfer.advise_command:advise"}
