"""The generator: objects with planted identity, and the answer key that says what must go and what must stay."""
