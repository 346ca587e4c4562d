"""Step 8, analyze: from a `SealedRun` to a `Verdict`."""
