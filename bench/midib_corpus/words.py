"""Names, places and numbers of people who do not exist, in halves that share no word.

`development` is what a cleaner may be improved on; `final` was held out until its misses were looked at; `unseen` (in a
module of that name) took its place, then `fresh`. Shares no list with the product:
nothing here is read from `policies/` or `gateway/`, and nothing there may be read from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

Half = Literal["development", "final", "unseen", "fresh"]
T = TypeVar("T")


def entries(text: str) -> list[str]:
    """The entries of a list written with bars and line ends between them."""
    return [entry for line in text.splitlines() for entry in line.split("|")]


def names(text: str) -> list[str]:
    """The words of a list of words."""
    return text.split()


FEMALE = names(
    "Leah Odette Marisol Ingrid Tamsin Yolanda Beatrix Nadine Coralie Henrietta Saskia Philippa Guadalupe Zelda "
    "Anneliese Rosalind Monique Tabitha Ottilie Imelda Cordelia Fernanda Bronwyn Ludmila Viola Mireille"
)
MALE = names(
    "Desmond Rupert Alejandro Thaddeus Cornelius Bartholomew Enrique Lionel Gideon Wendell Osvaldo Percival Tobias "
    "Leopold Emmanuel Quentin Rodrigo Silvester Ambrose Ferdinand Horatio Maurice Ignatius Reginald Clarence Wolfram"
)
# Some are words of the trade or of every day: a cleaner that only asks a dictionary misses them.
LAST = names(
    "Marrow Oyelaran Vandermeer Castellanos Brightwater Szymanski Featherstone Okonkwo Halvorsen Delacroix Pemberton "
    "Thistlewood Quintanilla Ravenscroft Montemayor Abernathy Lindqvist Nakagawa Fitzgerald Villalobos Kowalczyk "
    "Underhill Sorensen Blackwood Papadakis Winterbourne Achterberg Ramaswamy Castlemaine Dragomirov Ellsworth "
    "Hollingsworth Price Glass Short Young Stone Rivers Bishop Frost Baker Shepherd Carver Fields Marsh Church Sharp "
    "Winters Golden Parker"
)
STREETS = entries(
    "Michael Manor|Larkspur Lane|Old Quarry Road|Juniper Crescent|Harbour View Terrace|Cedar Hollow Drive|Mill Pond Way"
    "|Beechwood Avenue|Copperfield Court|Sycamore Heights|Lighthouse Point|Orchard Grove|Falconer Square"
    "|Thornbury Close|Meadowlark Trail|Candlewick Street"
)
CITIES = entries(
    "Sarahview|Port Ellison|Brackenridge|New Amberly|Westhaven Falls|Lake Corinth|Dunmorrow|East Tilbury|Kingsferry"
    "|North Calloway|Silverbrook|Hartwell Springs|Oakenshaw|Fairmont Vale|Grayson Mills|Pinecrest Bluff"
)
STATES = names("PA OH WA TX ME NH VT OR MN WI KY TN")
HOSPITALS = entries(
    "Smith Community Hospital|Saint Aldhelm Medical Center|Riverbend General Hospital|Lakeshore Veterans Clinic"
    "|Mount Carrigan Infirmary|Bellwether University Hospital|Holy Trinity Health System|Cranbourne Memorial Hospital"
    "|Eastgate Regional Medical Center|Whitfield Cancer Institute|Sunnydale Imaging Associates|Tremont Radiology Group"
)
WARDS = entries("4 West|Pavilion B|Tower 7|Ward Nightingale|Bay 12|Unit 3C")
MAILS = names("ptmail.example inbox.example posteo.example webpost.example")
# (Specific Character Set, family^given as a person writes it)
FOREIGN = (
    ("ISO_IR 100", "Müllenhöfer^Jürgen"),
    ("ISO_IR 100", "Lefèvre^Hélène"),
    ("ISO_IR 100", "Ibáñez^Begoña"),
    ("ISO_IR 192", "Żółkiewski^Grażyna"),
    ("ISO_IR 192", "Čapková^Božena"),
    ("ISO_IR 192", "Γεωργίου^Ελένη"),
    ("ISO_IR 144", "Люксембург^Анастасия"),
    ("ISO_IR 144", "Воронцова^Екатерина"),
    ("ISO_IR 138", "שרוןבסקי^דבורהלה"),
    ("ISO_IR 127", "قباني^لنزار"),
    ("ISO 2022 IR 6\\ISO 2022 IR 87", "Yamadera^Tarouemon=山寺^太郎左"),
    ("ISO 2022 IR 6\\ISO 2022 IR 149", "Hongdong^Gildongsu=洪東^吉洞"),
    ("GB18030", "Wangxiaodong^Lihua=王小东^丽华"),
    ("ISO_IR 101", "Wałęsowicz^Świętosław"),
)


@dataclass(frozen=True)
class Words:
    """The names and places of one half."""

    half: Half

    def of(
        self, words: Sequence[T], more: Sequence[T] = (), unseen: Sequence[T] = (), fresh: Sequence[T] = ()
    ) -> list[T]:
        """Every second entry: a word is in one half or the other. `more` is in the development half only; `unseen` and
        `fresh` are all of the halves of that name.
        """
        if self.half == "unseen":
            return list(unseen)
        if self.half == "fresh":
            return list(fresh)
        if self.half == "development":
            return [*list(words)[0::2], *more]
        return list(words)[1::2]
