"""Step 9, report: from a `Verdict` to text."""
