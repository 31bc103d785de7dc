"""What `bench.text` plants: synthetic people, and the lines in which devices burn them in. All invented.

Two sets of words that share none: `development` is what the stage may be improved on, `held-out` what it is judged by.
Held-out words that misses were looked at with become development words, and new ones take their place.
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
    (HELD_OUT, LATIN): [
        "Brannigan",
        "Oyelaran",
        "Castellane",
        "Grzybek",
        "Hollingsed",
        "Iversholm",
        "Delacroix",
        "Tremblett",
        "Yilmazer",
        "Ferreiro",
        "Quackenbusch",
        "Nakamori",
        "Uddin",
        "Sokolsky",
    ],
    (DEVELOPMENT, CYRILLIC): [
        "Лебедкин",
        "Сорокина",
        "Журавский",
        "Полякова",
        "Воронцова",
        "Гришин",
        "Ермолаев",
        "Щукина",
        "Фадеев",
        "Цветаева",
    ],
    (HELD_OUT, CYRILLIC): ["Белоусов", "Кириллова", "Никитин", "Рыбакова", "Хомяков", "Яковлева", "Эйдман"],
    (DEVELOPMENT, CJK): ["佐藤", "高橋", "王", "陳", "渡辺", "小林", "张", "李", "吉田", "周", "박", "이"],
    (HELD_OUT, CJK): ["田中", "松本", "山口", "刘", "杨", "赵", "木村", "김", "최"],
}
_GIVEN = {
    (DEVELOPMENT, LATIN): [
        "Torvald",
        "Ines",
        "Quentin",
        "Brigida",
        "Olaf",
        "Maren",
        "Hedda",
        "Ruben",
        "Calista",
        "Ivo",
        "Perpetua",
        "Lionel",
        "Soraya",
        "Gwen",
    ],
    (HELD_OUT, LATIN): [
        "Astrid",
        "Emeka",
        "Noor",
        "Philippa",
        "Tobias",
        "Xiomara",
        "Leif",
        "Wanda",
        "Bjarne",
        "Dolores",
    ],
    (DEVELOPMENT, CYRILLIC): ["Иван", "Мария", "Олег", "Анна", "Борис", "Юлия", "Дмитрий"],
    (HELD_OUT, CYRILLIC): ["Павел", "Елена", "Сергей", "Татьяна", "Фёдор"],
    (DEVELOPMENT, CJK): ["太郎", "花子", "小明", "美玲", "健一", "恵子", "伟强", "丽华", "直樹", "서연", "지훈"],
    (HELD_OUT, CJK): ["翔太", "美咲", "建国", "秀英", "大輔", "民洙", "민수", "영희"],
}
_PLACES = {
    DEVELOPMENT: (
        *("ST. ODILE HOSPITAL", "Klinikum Fernbach", "MERCY POINT IMAGING", "HARROWGATE GENERAL"),
        *("Centre Medical Valmont", "Northmoor Clinic", "LAKESIDE RADIOLOGY"),
    ),
    HELD_OUT: (
        "BRIDGEWATER INFIRMARY",
        "Ospedale San Vito",
        "Ashdown Diagnostics",
        "PRAIRIE VIEW MRI",
        "CHU Bellerive",
    ),
}
_PREFIXES = {DEVELOPMENT: ("", "", "MR", "P-", "H", "PID", "X", "KH-"), HELD_OUT: ("", "", "NHS", "A-", "UR", "No.")}
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
    prefix = random.choice(_PREFIXES[half])
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
