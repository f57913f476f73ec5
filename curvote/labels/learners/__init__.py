"""Learners from public features and noised codes: what each makes of a record."""
