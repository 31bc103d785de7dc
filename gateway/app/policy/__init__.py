"""Policies at work: loaded, approved, explained to a person, compared."""
