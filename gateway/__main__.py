"""`python -m gateway` and the `deid-gateway` command.

Exit codes: 0 done, 1 something was held, 2 usage or policy error, 3 environment (port, disk, key), 130 interrupted.
"""

from __future__ import annotations

import io
import os
import sys


def main() -> None:
    """Entry point of the installed command."""
    from gateway.cli import run  # here: workers import this module, and have no use for the commands
    from gateway.cli.endings import finish_output

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a path may hold what the terminal's encoding cannot say
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout is None:  # closed by whoever started us
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as we live
    sys.exit(finish_output(run(sys.argv[1:])))


if __name__ == "__main__":
    main()
