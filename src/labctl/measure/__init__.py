"""Measuring: every request once, over one fresh connection, down to bytes and stamps on disk."""
