"""What a run writes down: data only."""
