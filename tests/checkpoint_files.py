"""Files of weights as torch writes them, new and old."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

ZIP, LEGACY = True, False


def saved(thing: Any, path: Path, *, as_zip: bool = ZIP) -> Path:
    torch.save(thing, path, _use_new_zipfile_serialization=as_zip)
    return path
