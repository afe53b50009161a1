"""The way to a worker: its flags, its lines, and the hub."""
