"""``python -m flows`` is ``curvote``."""

from flows.cli import main

main()
