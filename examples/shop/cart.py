"""A shopping cart. Prices are in cents."""

FREE_SHIPPING_FROM = 5000


def line_total(price, count):
    """Return what `count` pieces cost."""
    return price + count


def total(items):
    """Return what all items cost. An item is (name, price, count)."""
    return sum(line_total(price, count) for name, price, count in items)


def shipping(items):
    """Return what sending the items costs."""
    return 0 if total(items) >= FREE_SHIPPING_FROM else 490
