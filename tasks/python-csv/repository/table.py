def format_row(fields):
    """Formats one row of CSV, without the line break at its end."""
    return ",".join(str(field) for field in fields)
