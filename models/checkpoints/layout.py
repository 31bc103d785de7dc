"""Where in its owner's file a network lies, and under which names (papers/facts.md 1.6, steps 3 to 5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from models.checkpoints.errors import CheckpointError
from models.checkpoints.reading import Checkpoint, is_tensor
from models.checkpoints.transformers_names import FIRST_KEY, from_transformers

SHOWN = 5  # keys that a message names
WRAPPER = "module."  # what DataParallel and DistributedDataParallel put before every name


@dataclass(frozen=True, slots=True)
class Layout:
    """How an owner wrote it down.

    `paths`: key paths of the sub-dictionary ("ckpt/model"), the first that is there is taken; "" is the file itself.
    `prefixes`: taken off the start of names, once each and in this order, where any name begins with it; names without
    it must then be heads. `heads`: prefixes of names that are not wanted, as they read when their turn has come.
    """

    paths: tuple[str, ...] = ("",)
    prefixes: tuple[str, ...] = ()
    heads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Mapped:
    """`leaves`: name in the network -> leaf of the checkpoint. `dropped`: prefix of a head -> how many tensors."""

    path: str
    stripped: tuple[str, ...]
    dropped: Mapping[str, int]
    leaves: Mapping[str, Any]


def map_keys(checkpoint: Checkpoint, layout: Layout) -> Mapped:
    """The network's tensors by its own names. Raises CheckpointError when two would share a name, or none is there."""
    path, found = _sub_dictionary(checkpoint, layout.paths)
    dropped: Counter[str] = Counter()
    stripped = []
    for prefix in dict.fromkeys((WRAPPER, *layout.prefixes)):
        found = dict(_without_heads(found, layout.heads, dropped))
        if not any(name.startswith(prefix) for name in found):
            continue
        # A name without the prefix stays as it is, and the strict comparison with the network then shows it.
        renamed = [(name.removeprefix(prefix), leaf) for name, leaf in found.items()]
        twice = [name for name, count in Counter(name for name, _ in renamed).items() if count > 1]
        if twice:
            raise CheckpointError(
                f"{checkpoint.file}: {', '.join(twice[:SHOWN])} would be there twice without {prefix}; another file?"
            )
        found = dict(renamed)
        stripped.append(prefix)
    found = dict(_without_heads(found, layout.heads, dropped))
    if any(name.endswith(FIRST_KEY) for name in found):
        found = from_transformers(found, checkpoint)
    return Mapped(path, tuple(stripped), dict(dropped), found)


def _sub_dictionary(checkpoint: Checkpoint, paths: tuple[str, ...]) -> tuple[str, dict[str, Any]]:
    for path in paths:
        place = checkpoint.tree
        for step in filter(None, path.split("/")):
            place = dict.get(place, step) if isinstance(place, dict) else None
        if isinstance(place, dict):
            tensors = {name: leaf for name, leaf in dict.items(place) if isinstance(name, str) and is_tensor(leaf)}
            if tensors:
                return path, tensors
    tried = ", ".join(path or "the file itself" for path in paths)
    top = checkpoint.tree if isinstance(checkpoint.tree, dict) else {}
    names = ", ".join(str(name)[:60] for name in list(dict.keys(top))[:SHOWN]) or "no names"
    raise CheckpointError(
        f"{checkpoint.file}: no tensors where they should be ({tried}); it holds {names}. "
        "Is it the file that the card names?"
    )


def _without_heads(
    found: Mapping[str, Any], heads: tuple[str, ...], dropped: Counter[str]
) -> Iterator[tuple[str, Any]]:
    for name, leaf in found.items():
        head = next((head for head in heads if name.startswith(head)), None)
        if head is None:
            yield name, leaf
        else:
            dropped[head] += 1
