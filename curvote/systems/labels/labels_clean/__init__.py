"""Comparison without privacy: the same learner, of labels as they are."""
