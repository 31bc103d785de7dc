"""What `bench.text` plants: synthetic people, and the lines in which devices burn them in. All invented.

Two sets of words that share none: `development` is what the stage may be improved on, `held-out` what it is judged by.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

DEVELOPMENT, HELD_OUT = "development", "held-out"
LATIN, CYRILLIC, CJK = "latin", "cyrillic", "cjk"

_SURNAMES = {
    (DEVELOPMENT, LATIN): [
        "Zimmerfeld",
        "Okonwo",
        "Halvarsen",
        "Dubrovin",
        "Pettigrove",
        "Quillon",
        "Marchetta",
        "Ostbye",
    ],
    (HELD_OUT, LATIN): [
        "Vexlund",
        "Abarquez",
        "Thornbrook",
        "Kowalik",
        "Jamesby",
        "Larrondo",
        "Wyckham",
        "Szentes",
        "Fairgood",
        "Mbeki",
    ],
    (DEVELOPMENT, CYRILLIC): ["Лебедкин", "Сорокина", "Журавский", "Полякова"],
    (HELD_OUT, CYRILLIC): ["Воронцова", "Гришин", "Ермолаев", "Щукина", "Фадеев", "Цветаева"],
    (DEVELOPMENT, CJK): ["佐藤", "高橋", "王", "陳"],
    (HELD_OUT, CJK): ["渡辺", "小林", "张", "李", "吉田", "周"],
}
_GIVEN = {
    (DEVELOPMENT, LATIN): ["Torvald", "Ines", "Quentin", "Brigida", "Olaf", "Maren"],
    (HELD_OUT, LATIN): ["Hedda", "Ruben", "Calista", "Ivo", "Perpetua", "Lionel", "Soraya", "Gwen"],
    (DEVELOPMENT, CYRILLIC): ["Иван", "Мария", "Олег"],
    (HELD_OUT, CYRILLIC): ["Анна", "Борис", "Юлия", "Дмитрий"],
    (DEVELOPMENT, CJK): ["太郎", "花子", "小明", "美玲"],
    (HELD_OUT, CJK): ["健一", "恵子", "伟强", "丽华", "直樹"],
}
_PLACES = {
    DEVELOPMENT: ("ST. ODILE HOSPITAL", "Klinikum Fernbach", "MERCY POINT IMAGING"),
    HELD_OUT: ("HARROWGATE GENERAL", "Centre Medical Valmont", "Northmoor Clinic", "LAKESIDE RADIOLOGY"),
}
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]


@dataclass(frozen=True, slots=True)
class Person:
    """One synthetic person; `script` is that of the name."""

    surname: str
    given: str
    patient_id: str
    birth: tuple[int, int, int]  # year, month, day
    place: str
    script: str


def person(half: str, script: str, random: Random) -> Person:
    """Somebody who does not exist."""
    digits = "".join(random.choice("0123456789") for _ in range(random.randint(5, 9)))
    prefix = random.choice(("", "", "MR", "P-", "H") if half == DEVELOPMENT else ("", "", "PID", "X", "KH-"))
    return Person(
        random.choice(_SURNAMES[half, script]),
        random.choice(_GIVEN[half, script]),
        prefix + digits,
        (random.randint(1921, 2019), random.randint(1, 12), random.randint(1, 28)),
        random.choice(_PLACES[half]),
        script,
    )


def line(who: Person, random: Random) -> str:
    """One line as a device burns it in."""
    year, month, day = who.birth
    if who.script == CJK:
        forms = [f"{who.surname} {who.given}", f"{who.surname}{who.given} {year}年{month}月{day}日"]
    elif who.script == CYRILLIC:
        forms = [f"{who.surname} {who.given}", f"{who.surname} {who.given[0]}. {day:02}.{month:02}.{year}"]
    else:
        forms = [
            f"{who.surname.upper()}, {who.given.upper()}",
            f"{who.surname}^{who.given}",
            f"{who.given} {who.surname}",
            f"{who.surname} {who.given[0]}. {day:02}.{month:02}.{year}",
            f"ID: {who.patient_id}",
            f"{who.patient_id} {who.surname.upper()}",
            f"DOB {month:02}/{day:02}/{year}",
            f"{day:02}-{_MONTHS[month - 1]}-{year}",
            who.place,
            f"{who.place} {who.patient_id}",
        ]
    return random.choice(forms)
