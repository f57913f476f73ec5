"""The version of curvote that is installed."""

from importlib.metadata import version

__version__ = version("curvote")
