"""Other de-identifiers, each in an environment of its own, with the defaults that its documentation shows."""
