"""Step 7, seal: from a closed run directory to a `SealedRun`."""
