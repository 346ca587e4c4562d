"""Step 5, run: from a `ConsumedPacket` to a closed run directory."""
