"""Gates: one module a kind; each takes the evidence and gives passed, failed or not evaluated, with both sides kept."""
