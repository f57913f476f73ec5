"""``python -m curvote.flows`` is ``curvote``."""

from curvote.flows.cli import main

main()
