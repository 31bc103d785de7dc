"""Backup of a gateway, of one machine or of a cluster, while it runs; and its restore into an empty home.

    DIR/manifest.json     when, by which schema, how many files, and the seal over files.jsonl
    DIR/files.jsonl       path, size and sha256 of every file below DIR
    DIR/tables.sqlite     our tables, whichever database they were in
    DIR/home/             the home without keys, locks, and what is half received

The engine's store is not in it: our tables are the truth, and what they say is due is enqueued anew. Keys are not in it
either: whoever has both has everything. They go to a folder of their own, which is to be kept elsewhere.
"""

from gateway.app.backup.making import Made, make_backup
from gateway.app.backup.restoring import Restored, restore_backup

__all__ = ["Made", "Restored", "make_backup", "restore_backup"]
