"""The clients: asynchronous, synchronous, one query, and a pool."""
