"""De-identification gateway: receive, route, header, pixels, gate, forward. Layout and import rules: README."""
