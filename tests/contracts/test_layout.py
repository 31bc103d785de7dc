"""The shape of the code: sizes, names, layers, where exceptions end, and who may seal a clearance."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GATEWAY = ROOT / "gateway"
MODULES = sorted(GATEWAY.rglob("*.py"))
LINES_MAX = 300
VAGUE = {"util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "stuff"}

# The only places outside `flow` that may catch everything: tops of threads and processes, where nobody above could.
TOPS = {
    "receive/receiver.py:_serve": "one association's thread: the next peer must still be answered",
    "receive/process.py:run": "a receiver process: multiprocessing would print the exception's text",
    "app/poller.py:_run": "the poller's thread: the next turn tries again",
    "app/backload/runner.py:_run": "the thread of back-loads: what is not done is asked for again",
    "app/commitments.py:_run": "the thread that reports commitments: what is unreported stays on disk",
    "app/message/watch.py:_run": "the watch's thread: a message that fails keeps no study back",
    "app/batch/scrub.py:_one": "one study's thread: its fault holds it, its neighbours go on",
    "cli/__init__.py:run": "the process: a traceback would quote values",
}


def name_of(path: Path) -> str:
    return str(path.relative_to(GATEWAY))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def functions(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """(name of the innermost function or "", node) of every node."""

    def walk(node: ast.AST, inside: str) -> Iterator[tuple[str, ast.AST]]:
        for child in ast.iter_child_nodes(node):
            here = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else inside
            yield here, child
            yield from walk(child, here)

    return walk(tree(path), "")


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_is_short_and_says_what_it_is_for(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LINES_MAX
    assert not lines or ast.get_docstring(tree(path)), "no module docstring"


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nothing_is_left_for_later(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"\b(TODO|FIXME|XXX)\b", text) == []


def test_no_module_or_class_has_a_name_that_says_nothing() -> None:
    vague = []
    for path in MODULES:
        words = {word for part in path.relative_to(GATEWAY).with_suffix("").parts for word in part.split("_")}
        classes = [node.name for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)]
        words |= {word.lower() for name in classes for word in re.findall(r"[A-Z][a-z]+", name)}
        vague += [f"{name_of(path)}: {word}" for word in sorted(words & VAGUE)]
    assert vague == []


def catches_everything(handler: ast.ExceptHandler) -> bool:
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")) for kind in caught
    )


def always_raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def test_only_flow_and_the_listed_tops_catch_everything() -> None:
    found = set()
    for path in MODULES:
        if path.relative_to(GATEWAY).parts[0] == "flow":
            continue
        for function, node in functions(path):
            if isinstance(node, ast.ExceptHandler) and catches_everything(node) and not always_raises_again(node):
                found.add(f"{name_of(path)}:{function}")
    assert found == set(TOPS)


def test_only_the_gate_and_a_review_seal_a_clearance() -> None:
    sealing = {
        path.relative_to(GATEWAY).parts[0]
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and node.attr == "sealed"
    }
    assert sealing <= {"gate", "review"}
    assert "gate" in sealing


def test_only_the_nouns_and_their_makers_construct_a_clearance() -> None:
    making = {
        path.relative_to(GATEWAY).parts[0]
        for path in MODULES
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Clearance"
    }
    assert making <= {"gate", "review", "study.py"}


WATCHED = """
import importlib.abc, json, sys
asked = []
class Watch(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        asked.append(name.partition(".")[0])
sys.meta_path.insert(0, Watch())
import {module}
print(json.dumps(sorted(set(asked) | {{name.partition(".")[0] for name in sys.modules}})))
"""


@pytest.mark.parametrize("module", ["gateway.receive", "gateway.flow", "gateway.forward", "gateway.header"])
def test_importing_a_room_asks_for_no_learning_library(module: str) -> None:
    # Watches what is asked for, so that it also tells where torch is not installed.
    ran = subprocess.run(
        [sys.executable, "-c", WATCHED.format(module=module)], capture_output=True, text=True, check=True
    )
    asked = set(json.loads(ran.stdout))
    assert "gateway" in asked
    assert (
        asked & {"torch", "monai", "diffusers", "transformers", "torchvision", "jax", "tensorflow", "onnxruntime"}
        == set()
    )


def test_imports_keep_to_the_layers() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run([program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout[-3000:]
