"""The second analyzer: one file, standard library only, which imports nothing of labctl and is imported by nothing."""
