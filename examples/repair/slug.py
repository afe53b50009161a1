def slug(title):
    """The part of an address that names a page."""
    return title.lower().replace(" ", "-")
