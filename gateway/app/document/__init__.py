"""Documents as blocks, shown alike as HTML and as PDF."""
