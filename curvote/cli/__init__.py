"""Command line of curvote: commands, output and doctor."""
