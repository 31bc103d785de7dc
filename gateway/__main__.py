"""`python -m gateway` and the `deid-gateway` command: run it, and turn our errors into words and exit codes.

Exit codes: 0 done, 1 something was held, 2 usage or policy error, 3 environment (port, disk, key), 130 interrupted.
"""

from __future__ import annotations

import sys

from gateway.cli import run


def main() -> None:
    """Entry point of the installed command."""
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
