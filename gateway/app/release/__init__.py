"""Releases at work: collected, judged over their people, cleared or blocked, reported."""
