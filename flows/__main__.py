"""``curvote`` and ``python -m curvote.flows``; Ctrl-C ends even imports in order."""

from __future__ import annotations

import sys


def main() -> None:
    """Import the command line and run it; exit 130 where Ctrl-C came before."""
    try:
        from curvote.flows.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT, as shells count


if __name__ == "__main__":
    main()
