"""Sections that only a page of private labels shows."""
