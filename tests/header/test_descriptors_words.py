"""The allow-list: what it is made of, what passes by shape, what never does; and how much time it takes."""

from __future__ import annotations

import runpy
import subprocess
import sys
import time
from pathlib import Path

import pydicom
import pytest
from planted_words import GOLDEN, OWN, WORDS, corpus
from pydicom.sr._concepts_dict import concepts

from gateway.header.descriptors_masking import masked, reading_of
from gateway.header.descriptors_own import OwnWords, Said
from gateway.header.descriptors_words import Words, words_with
from gateway.policy.standard import FOLDER, read_dated

ROOT = Path(__file__).resolve().parents[2]


def test_the_shipped_list_is_what_its_generator_writes() -> None:
    head, _ = read_dated(FOLDER / "descriptor_words.csv")
    if f"pydicom {pydicom.__version__};" not in head["source"]:
        pytest.skip(f"the list was made with another pydicom: {head['source']}")
    command = [sys.executable, ROOT / "tools" / "generate_allow_list.py", "--check"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0


@pytest.mark.parametrize(
    "word",
    [
        *(
            "P4",
            "P101",
            "S108",
            "I0",
            "B31f",
            "Br40d",
            "Qr59",
            "T2w",
            "T1",
            "p2",
            "ep2d",
            "4scan",
            "3D",
            "2.5mm",
            "b1000",
        ),
        *("GRAPPA2", "120kV", "10000ms", "FSPGR", "SSFSE", "MPRAGE", "ThoraxRoutine", "AxT2FLAIR", "HEADNECK"),
        *("Knochenfenster", "Beckenübersicht", "Beckenuebersicht", "WIRBELSÄULE", "rodilla", "ЧЕРЕП", "SMI", "VNC"),
        *("appendicitis", "cholecystolithiasis", "hemicraniectomy", "rivaroxaban", "angiomyolipoma"),
    ],
)
def test_technical_and_medical_tokens_stay(word: str) -> None:
    tokens = reading_of(word, WORDS)
    assert tokens.unknown == ()


@pytest.mark.parametrize(
    "word",
    [
        *("Zzsynth", "Smith", "SMITH", "smith", "Müller", "McCarthy", "DiCaprio", "VanDyke", "Whitehead", "Armstrong"),
        *("Kim", "kim", "Lee", "Ali", "Wolfgang", "Shcherbakov", "Щербаков", "山田", "홍길동", "Παπαδόπουλος", "محمد"),
        *("LEAK0001", "PT0012", "MRN1234", "AB123456", "A1234567", "20140321", "1234567", "3f9a27c1d4", "CASE4711"),
        *("Becken1234567", "Schultheiss", "Kopfmann", "Beckenbauer", "Handke"),
    ],
)
def test_what_could_be_a_name_or_a_number_of_somebody_does_not_stay(word: str) -> None:
    assert reading_of(word, WORDS).unknown != () or masked(word, OWN).text == ""


# The most frequent family names of several countries, none of which a description may keep.
NAMES = """
Smith Johnson Williams Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson Anderson Thomas
Taylor Moore Jackson Martin Thompson Harris Sanchez Clark Ramirez Lewis Robinson Wright Scott Torres Nguyen Flores
Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts Gomez Phillips Evans Turner Diaz Parker Cruz Edwards
Collins Stewart Morris Murphy Rogers Morgan Cooper Peterson Bailey Reed Kelly Howard Cox Richardson Watson Brooks
Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer Bauer Richter Schröder Neumann
Schwarz Zimmermann Krüger Hofmann Hartmann Schmitt Werner Krause Meier Lehmann Schmid Schulze Maier Köhler Herrmann
Dubois Durand Leroy Moreau Laurent Lefebvre Bertrand Roux Fournier Girard Bonnet Dupont Lambert Rousseau Vincent
Rossi Ferrari Esposito Bianchi Romano Colombo Ricci Bruno Gallo Conti Silva Santos Oliveira Souza Pereira Costa
Kowalski Nowak Wójcik Novák Svoboda Nagy Tóth Yılmaz Kaya Demir Ivanov Petrov Popescu Jansen Bakker Visser Hansen
Larsen Nilsson Korhonen Patel Singh Khan Chen Wang Zhang Tanaka Suzuki Sato Kim Choi Tran
Mary Patricia Jennifer Linda Elizabeth Barbara Susan Jessica Sarah Karen James Robert John Michael William David
Richard Joseph Charles Christopher Daniel Matthew Anthony Steven Andrew Hans Peter Klaus Jürgen Ursula Monika Petra
Sabine Claudia Heike Stefan Wolfgang Jean Pierre Michel Philippe Nathalie Isabelle Carlos Jorge Pedro Carmen Lucia
"""


@pytest.mark.parametrize("name", sorted(set(NAMES.split())))
def test_frequent_names_are_not_on_the_list(name: str) -> None:
    for written in (name, name.upper(), name.lower()):
        assert masked(f"AX {written} T2", OwnWords.of((), WORDS)).text == "AX T2"


def test_nearly_every_meaning_of_the_code_dictionaries_stays_whole() -> None:
    """Meanings of DCM and SNOMED codes, without animals; what does not stay are names of people in them."""
    nobody = OwnWords.of((), WORDS)
    meanings = [
        meaning
        for scheme in ("DCM", "SCT")
        for codes in concepts[scheme].values()
        for meaning, groups in codes.values()
        if not {7480, 7481, 7486, 7454, 7455, 7490} & set(groups)
    ][::7]
    lost = [meaning for meaning in meanings if masked(meaning, nobody).text != meaning]
    assert len(meanings) > 1500
    assert len(lost) / len(meanings) < 0.06


def test_a_site_s_words_are_known_in_any_case_and_spelling() -> None:
    site = words_with(("zoomscoutix", "größenwert"))
    assert all(site.stays(word) for word in ("ZOOMSCOUTIX", "Zoomscoutix", "GRÖSSENWERT", "Groessenwert"))
    assert not WORDS.stays("Zoomscoutix")


def test_the_compiled_list_is_shared() -> None:
    assert words_with() is words_with(())
    assert words_with(("abcdef",)) is words_with(("abcdef",))


def test_the_list_and_its_corpora_are_data_files() -> None:
    kinds = {row["kind"] for row in read_dated(FOLDER / "descriptor_words.csv")[1]}
    assert kinds == {
        "core",
        "join",
        "word",
        "generic",
        "everyday",
        "rare",
        "small",
        "ambiguous",
        "person",
        "titled",
        "phrase",
    }
    assert (GOLDEN / "descriptors_kept.csv").is_file()


def test_a_description_takes_far_less_than_a_millisecond() -> None:
    texts = [row["text"] for row in corpus("descriptors_kept.csv")]
    own = OwnWords.of([Said("name", "ZZSYNTH^LEAKTEST"), Said("number", "LEAK0001")], Words())
    for text in texts:  # the readings of texts are remembered, as for the slices of a series
        masked(text, own)
    began = time.process_time()
    for text in texts:
        masked(text, own)
    assert (time.process_time() - began) / len(texts) < 0.5e-3


def test_the_generator_runs_as_a_module() -> None:
    made = runpy.run_path(str(ROOT / "tools" / "generate_allow_list.py"))
    assert "mprage" in made["generate"]()["core"]
