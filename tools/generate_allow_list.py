"""Writes `policies/standard/descriptor_words.csv`: the words that a cleaned descriptor may keep (PS3.15 E.3.5).

    .venv/bin/python tools/generate_allow_list.py [--check]

Sources: code meanings of `pydicom.sr` (without breeds and species), names and keywords of PS3.6 by pydicom's
dictionary, and `tools/vocabulary/`, which people wrote and may edit. Kinds of words:

    core       technical first; a person of that name is masked only together with another part of the name
    join       parts of words that are written together (core or not)
    word       everything else that is known
    generic    words of institutions, which alone name none
    everyday   words of a general dictionary: known, yet streets, houses and towns are made of them
    rare       more of a general dictionary: known where they are written small, and where they begin a sentence
    small      words of it that few people bear as a name: known where they are written small
    ambiguous  known words that are names too; no new words
    person     names that no shape lets pass; no new words
    titled     the same, when written like a name (Abt, not ABT)
    phrase     terms in these words only
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

import pydicom
from pydicom._dicom_dict import DicomDictionary
from pydicom.sr._cid_dict import cid_concepts
from pydicom.sr._concepts_dict import concepts

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from gateway.header.descriptors_folding import spellings  # noqa: E402

VOCABULARY = Path(__file__).resolve().parent / "vocabulary"
TARGET = ROOT / "policies" / "standard" / "descriptor_words.csv"
ANIMALS = frozenset({7454, 7455, 7480, 7481, 7486, 7490})  # taxa, breeds, registries: thousands of place names
CORE_GROUPS = (4, 12, 29, 33, 244, 4031)  # anatomic regions, modalities, views
WIDTH = 110
VOCABULARIES = (
    *("techniques.txt", "anatomy.txt", "report_words.txt", "more_words.txt"),
    *("protocol_words.txt", "languages.txt", "everyday.txt", "rare.txt"),
)
_WORD = re.compile(r"[^\W\d_]+")


def sections(path: Path) -> dict[str, list[str]]:
    """Lines of a vocabulary file by section; `#` begins a comment."""
    found: dict[str, list[str]] = defaultdict(list)
    name = ""
    for line in path.read_text("utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if text.startswith("["):
            name = text.strip("[]")
        elif text:
            found[name].append(text)
    return found


def code_words(excluded: frozenset[str]) -> set[str]:
    """Words of code meanings. A word that is written small somewhere is no name; a capitalised one counts unless it is
    listed as a name."""
    small: set[str] = set()
    capital: set[str] = set()
    for scheme, by_keyword in concepts.items():
        if scheme == "ITIS_TSN":
            continue
        for codes in by_keyword.values():
            for meaning, groups in codes.values():
                if ANIMALS & set(groups):
                    continue
                for word in _WORD.findall(meaning):
                    (small if word.islower() else capital).add(word)
    return {word for word in small | {w for w in capital if w not in excluded} if len(word) > 1}


def listed_words() -> dict[str, set[str]]:
    """Folded words by kind that people wrote into `tools/vocabulary/`."""
    kinds: dict[str, set[str]] = defaultdict(set)
    for name in VOCABULARIES:
        for kind, lines in sections(VOCABULARY / name).items():
            kinds[kind].update(found for word in " ".join(lines).split() for found in spellings(word))
    return kinds


def phrases() -> set[str]:
    """Terms that stay whole: those of `phrases.txt`, and names of physicians with what they gave their name to."""
    found = set(sections(VOCABULARY / "phrases.txt")["phrase"])
    eponyms = sections(VOCABULARY / "eponyms.txt")
    for name in eponyms["alone"]:
        found |= {name, f"{name}s", f"{name}'s"}
    for line in eponyms["with"]:
        names, nouns = line.split(":")
        found |= {
            f"{name}{ending} {noun}" for name in names.split() for ending in ("", "s", "'s") for noun in nouns.split()
        }
    for line in eponyms["before"]:
        leading, names = line.split(":")
        for lead in re.findall(r"\S+ of|\S+", leading):
            found |= {f"{lead} {name}" for name in names.split()}
    for line in eponyms["compound"]:
        names, nouns = line.split(":")
        found |= {f"{name}{joint}{noun}" for name in names.split() for joint in ("", " ") for noun in nouns.split()}
    return found


def standard_words(excluded: frozenset[str]) -> set[str]:
    """Folded words of PS3.6 names, and capitalised words of the anatomy and modality concepts."""
    names = [name for _, _, name, _, _ in DicomDictionary.values()]
    found = {word for name in names for word in _WORD.findall(name) if len(word) > 1}
    for group in CORE_GROUPS:
        for concept_names in cid_concepts.get(group, {}).values():
            found.update(word for name in concept_names for word in re.findall(r"[A-Z][a-z]{2,}", name))
    return {folded for word in found - excluded for folded in spellings(word)}


def generate() -> dict[str, set[str]]:
    """Folded words by kind. `ambiguous` only flags words of another kind, `person` and `titled` have none of
    them."""
    excluded = frozenset(" ".join(sections(VOCABULARY / "not_words.txt")["names"]).split())
    names = {folded for name in excluded for folded in spellings(name)}
    kinds = listed_words()
    kinds["core"] |= standard_words(excluded)
    kinds["word"] |= {folded for word in code_words(excluded) for folded in spellings(word)} - names
    kinds["word"] -= kinds["core"] | kinds["generic"] | kinds["join"]
    known = kinds["core"] | kinds["word"] | kinds["generic"] | kinds["join"]
    kinds["everyday"] -= known | names
    kinds["ambiguous"] &= known
    kinds["person"] -= known
    kinds["titled"] -= known | kinds["person"]
    for kind in ("rare", "small"):
        kinds[kind] -= known | names | kinds["everyday"] | kinds["person"] | kinds["titled"]
    return kinds


def written() -> str:
    """The file's text."""
    lines = [
        "# title: words that a cleaned descriptor may keep, and words that only look like them (PS3.15 E.3.5)",
        "# edition: 1",
        f"# source: code meanings and PS3.6 names of pydicom {pydicom.__version__}; tools/vocabulary",
        "# written-by: tools/generate_allow_list.py",
        "kind,words",
    ]
    for kind, words in sorted(generate().items()):
        row: list[str] = []
        for word in sorted(words):
            if row and len(" ".join([*row, word])) > WIDTH:
                lines.append(f"{kind},{' '.join(row)}")
                row = []
            row.append(word)
        if row:
            lines.append(f"{kind},{' '.join(row)}")
    lines += [f"phrase,{phrase}" for phrase in sorted(phrases())]
    return "\n".join(lines) + "\n"


def main() -> int:
    text = written()
    if "--check" in sys.argv:
        same = TARGET.read_text("utf-8") == text
        print("up to date" if same else "differs: run tools/generate_allow_list.py")
        return 0 if same else 1
    TARGET.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
