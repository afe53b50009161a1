def median(values):
    """Returns the middle value of a non-empty list."""
    values.sort()
    return values[len(values) // 2]
