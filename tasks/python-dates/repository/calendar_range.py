from datetime import timedelta


def days(first, last):
    """Yields every day from first to last, both included."""
    day = first
    while day != last:
        yield day
        day += timedelta(days=1)
