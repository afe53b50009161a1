"""The way to the workers: `qwen hub`, its lines, and the flags of a session."""
