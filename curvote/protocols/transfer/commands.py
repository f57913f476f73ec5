"""Commands of transfer: what a source would add, before anybody is asked."""

COMMANDS = {"advise": "curvote.protocols.transfer.advise_command:advise"}
