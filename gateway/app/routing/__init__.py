"""Routing as an administrator tests it: which rule fires, what would hold, who answers an echo."""
