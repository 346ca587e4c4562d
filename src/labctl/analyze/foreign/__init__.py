"""Evidence that another lab measured, looked at by the same formulas; it is never a sealed run."""
