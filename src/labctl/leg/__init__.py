"""Step 6, measure: one leg, one process, one folder."""
