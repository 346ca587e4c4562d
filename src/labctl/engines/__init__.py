"""What each engine calls things: data only."""
