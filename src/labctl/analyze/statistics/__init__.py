"""What may be concluded from speeds: exact where it can be, from exact fractions of integer nanoseconds."""
