"""The version of the SDK, which is the version of the binary that it carries."""

__version__ = "0.1.0"
