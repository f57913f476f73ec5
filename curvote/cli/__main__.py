"""Entry point of ``curvote``: Ctrl-C ends even imports in order."""

import sys


def main() -> None:
    """Import and run the command line; exit 130 after an early Ctrl-C."""
    try:
        from curvote.cli.app import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT, as shells count


if __name__ == "__main__":
    main()
