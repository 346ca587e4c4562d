"""Judges probe runs: one bounded collective, classified by the furthest stage that every rank proved."""
