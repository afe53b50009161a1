"""One session: its prompts, its events and its store."""
