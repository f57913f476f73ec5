"""Whole ways from clients to a classifier: releases, budgets, rounds, stages."""
