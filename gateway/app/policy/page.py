"""Pages that policy commands write: one file, opened from disk, that asks no network for anything and runs no script.

All text goes through `escaped`. The page's own content policy forbids scripts, frames, forms and every fetch, so that
even a fault in the escaping could not make it speak to anybody.
"""

from __future__ import annotations

import html
from collections.abc import Collection
from pathlib import Path

from gateway.app.preview.values import legible
from gateway.durable import writing
from gateway.errors import UsageError

DOCTYPE = "<!doctype html>"
CONTENT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"

STYLE = """
:root { color-scheme: light dark; --ink: #1a1a1a; --soft: #595959; --paper: #fff; --shade: #f4f4f2; --line: #c9c9c4;
  --gone: #a11212; --gone-paper: #fdeaea; --new: #0b5c2b; --new-paper: #e6f5ea; --warn: #6b4400;
  --warn-paper: #fff3d6; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --soft: #b0b0b0; --paper: #161616; --shade: #222;
  --line: #4a4a4a; --gone: #ff9d9d; --gone-paper: #3a1717; --new: #86dba3; --new-paper: #12331f; --warn: #ffd98a;
  --warn-paper: #3a2c08; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 100rem; padding: 1rem 1.5rem 4rem; font: 15px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--paper); }
h1 { font-size: 1.5rem; margin: .5rem 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .3rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
a { color: inherit; } :focus-visible { outline: 3px solid #2f6fde; outline-offset: 2px; }
p, li { max-width: 60rem; }
.warning { border: 2px solid var(--warn); background: var(--warn-paper); color: var(--warn); padding: .6rem .9rem;
  border-radius: .3rem; font-weight: 600; }
.soft { color: var(--soft); } td { overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .87rem; }
caption { text-align: left; color: var(--soft); padding: .2rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .5rem; border-bottom: 1px solid var(--line); }
thead th { background: var(--shade); white-space: nowrap; }
code, .mono { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .95em; }
@media print { body { max-width: none; padding: 0; font-size: 9pt; color-scheme: light; } .screen { display: none; }
  thead { display: table-header-group; } tr { break-inside: avoid; } h2, h3 { break-after: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def escaped(text: str) -> str:
    """`text` as HTML that shows it and does nothing else, in an element or in an attribute with quotes."""
    return html.escape(legible(text), quote=True)


def page(title: str, body: str, style: str = "") -> str:
    """A whole page. `title` is text, `body` and `style` are markup of ours."""
    return (
        f'{DOCTYPE}\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{CONTENT_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def require_page(path: Path, inputs: Collection[Path] = ()) -> None:
    """Raises UsageError where writing a page would replace something that is none: above all one of the inputs."""
    if path.resolve() in {one.resolve() for one in inputs}:
        raise UsageError(f"{path} is one of the files to look at; name another one for the page")
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file in it")
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist; make it, or name another place")
    if path.exists():
        with open(path, "rb") as file:
            if file.read(len(DOCTYPE)).decode("latin-1").lower() != DOCTYPE:
                raise UsageError(f"{path} is there already and is no page; name another file, or remove it")


def write_page(path: Path, text: str) -> None:
    """The page in one piece, readable by its owner alone (mode 0600)."""
    with writing(path) as file:
        file.write(text.encode("utf-8", "replace"))
