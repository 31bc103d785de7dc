"""How a command ends: exit codes, and the words for what went wrong. Words name paths, codes and places, never values.

0 done, 1 something was held, 2 usage or policy error, 3 environment (port, disk, key), 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from concurrent.futures.process import BrokenProcessPool

from gateway.cli.output import complain
from gateway.errors import GatewayError
from gateway.observe import origin

USAGE = 2
ENVIRONMENT = 3
INTERRUPTED = 130

_AGAIN = "mend that, then run the same command again"
_NEXT = {
    errno.EACCES: "run it as the user whom this belongs to, or change the mode",
    errno.EPERM: "run it as the user whom this belongs to, or change the mode",
    errno.ENOSPC: "free some space, then run the same command again",
    errno.EDQUOT: "free some space, then run the same command again",
    errno.EROFS: "it is mounted read-only; name another place",
    errno.ENOENT: "look whether the path is right",
    errno.ENOTDIR: "a file is where a folder should be; name another path",
    errno.EISDIR: "a folder is where a file should be; name another path",
    errno.EEXIST: "something is there already; name another path",
    errno.EMFILE: "allow more open files (ulimit -n)",
    errno.ENAMETOOLONG: "name a shorter path",
}


def ending(error: Exception) -> tuple[int, str]:
    """Exit code and words for whatever ended a command."""
    if isinstance(error, GatewayError):
        return error.exit_code, str(error)
    if isinstance(error, OSError):
        return ENVIRONMENT, _of_system(error)
    if type(error).__module__.startswith("sqlalchemy."):
        return ENVIRONMENT, (
            f"the database could not be read or written ({type(error).__name__}); "
            "look at DEID_DATABASE_URL, the disk, and whether another version wrote it"
        )
    if isinstance(error, BrokenProcessPool | MemoryError):
        return ENVIRONMENT, "a worker process died, perhaps for lack of memory; set DEID_WORKERS lower and run it again"
    return ENVIRONMENT, f"something nobody foresaw: {origin(error)}; please report this line"


def _of_system(error: OSError) -> str:
    places = " -> ".join(
        os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, str | bytes)
    )
    says = error.strerror or origin(error)
    return f"{places + ': ' if places else ''}{says}; {_NEXT.get(error.errno or 0, _AGAIN)}"


def finish_output(code: int) -> int:
    """Write out what is still buffered; the exit code, 3 when that was not possible (disk full, reader gone)."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        if error.errno != errno.EPIPE:
            complain(f"the output could not be written: {_of_system(error)}")
        return code or ENVIRONMENT
    return code
