"""What belongs to a person across studies: pseudonym tables, vault, opt-out, erasure, retention."""
