"""The second analyzer: standard library only; its files import each other, and nothing imports them."""
