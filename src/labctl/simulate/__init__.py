"""Synthetic campaigns through the real analyzer: how often each rule set passes by luck, and how often it sees."""
