"""Back-loads: studies that a list names are fetched from a PACS, at its pace and in its hours."""
