"""Networks as learners from codes, by the extra `neural`; absent, all else works."""
