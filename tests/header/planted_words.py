"""The identity that is planted in descriptions: two corpora of texts are judged against it (tests/golden)."""

from __future__ import annotations

import csv
from pathlib import Path

from gateway.header.descriptors_masking import masked
from gateway.header.descriptors_own import DATE, NAME, NUMBER, PLACE, OwnWords, Said
from gateway.header.descriptors_words import words_with

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
WORDS = words_with()
SAID = (
    Said(NAME, "ZZSYNTH^LEAKTEST^MARIE"),
    Said(NAME, "Müller-Thurgau^Jörg"),
    Said(NAME, "Щербаков^Юрий"),
    Said(NAME, "YAMADA^TARO=山田^太郎"),
    Said(NUMBER, "LEAK0001"),
    Said(NUMBER, "A-4711/22"),
    Said(DATE, "19500131"),
    Said(DATE, "20200131"),
    Said(PLACE, "Zzklinik Nord, Bahnhofstr. 1, 8001 Zzstadt"),
    Said(PLACE, "+41 44 123 45 67"),
)
OWN = OwnWords.of(SAID, WORDS)
NOBODY = OwnWords.of((), WORDS)


def own(*said: Said) -> OwnWords:
    return OwnWords.of(said, WORDS)


def cleaned(text: str, of: OwnWords = OWN) -> str:
    return masked(text, of).text


def corpus(name: str) -> list[dict[str, str]]:
    with open(GOLDEN / name, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
