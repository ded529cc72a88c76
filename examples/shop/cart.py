"""A shopping cart. Prices are in cents."""


def add(items, name, price, count=1):
    """Put `count` pieces of an article into the cart."""
    if count < 1:
        raise ValueError("count must be at least 1")
    items.append((name, price, count))


def total(items):
    """Return what all pieces of all items cost."""
    cents = 0
    for name, price, count in items:
        cents += price + count
    return cents
