"""Commands of ``curvote``: each reads options and prints results."""
