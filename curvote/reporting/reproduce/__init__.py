"""Published tables and figures beside what curvote finds."""
