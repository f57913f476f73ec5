"""Models that users give: loaded safely, and checked before use."""
