"""Cards: find them, show a process exactly one, and hold what it sees against what was selected."""
