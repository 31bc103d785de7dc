"""Names of physicians stay in the terms that they gave their name to, and go where they are somebody's."""

from __future__ import annotations

import pytest

from gateway.header.descriptors_own import NAME, Said
from tests.header.planted_words import NOBODY, cleaned, own

STAYS = (
    "Monteggia fracture left",
    "Bennett's fracture",
    "L Jones fracture",
    "R Colles fracture",
    "for Bennett fracture",
    "?Bennett fracture",
    "Bell's palsy",
    "Turner syndrome",
    "Hartmann procedure",
    "Ampulla of Vater",
    "Circle of Willis",
    "Sturge-Weber, Klippel-Trenaunay",
    "Legg-Calvé-Perthes",
    "Guillain-Barré",
    "von Hippel-Lindau disease",
    "VON WILLEBRAND DISEASE",
    "M. Bechterew",
    "Morbus Paget",
    "Z.n. Collesfraktur",
    "Radius Smith-Fraktur",
    "Cobb angle 23",
    "Hickman catheter tip",
    "Baker cyst knee",
    "PET DOTATOC Krea 1.2",
    "Moyamoya post bypass",
    "Haglund exostosis",
    "Pauwels type II fracture",
    "Sphincter of Oddi",
    "Stanford A dissection",
    "Kerley B lines",
    "Garden IV",
)
GOES = {
    "John Smith fracture clinic": "fracture clinic",
    "Dr. J. Bell palsy clinic": "palsy clinic",
    "Ref Dr Bennett fracture clinic": "Ref fracture clinic",
    "T. Smith fracture": "fracture",
    "SMITH JONES FRACTURE": "FRACTURE",
    "Nurse Jones fracture L": "fracture L",
    "by Jones fracture team": "fracture team",
    "Patient: Wilson disease": "Patient: disease",
    "Mr Turner syndrome follow up": "syndrome follow up",
    "Baker, cyst knee": "cyst knee",
    "seen with Bell. Palsy left": "seen with. Palsy left",
    "Turner knee": "knee",
    "M. Paget": "",
    "MR knee Haglund": "MR knee",
    "Pauwels knee": "knee",
    "CT Rathke": "CT",
    "Galeazzi hand": "hand",
    "Ivor Lewis": "",
    "Sanders V": "V",
    "Hampton B chest": "B chest",
    "Stanford A thorax": "A thorax",
}


@pytest.mark.parametrize("text", STAYS)
def test_the_name_stays_in_its_term(text: str) -> None:
    assert cleaned(text, NOBODY) == text


@pytest.mark.parametrize("text", GOES)
def test_the_name_goes_where_it_is_somebodys(text: str) -> None:
    assert cleaned(text, NOBODY) == GOES[text]


def test_the_patient_s_own_name_goes_from_a_term_too() -> None:
    assert cleaned("Bennett fracture left", own(Said(NAME, "Bennett^Anna"))) == "fracture left"
