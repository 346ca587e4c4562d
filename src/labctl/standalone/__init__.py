"""The second analyzer: one file that needs nothing but Python, imports nothing of labctl, and is imported by nothing."""
