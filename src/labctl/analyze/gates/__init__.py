"""One module a gate kind; each returns passed, failed or not evaluated."""
