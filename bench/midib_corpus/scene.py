"""What the objects of one series share: the patient, the study, the series, and every choice made once for them."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.midib_corpus import clinical, fresh, unseen, widened
from bench.midib_corpus.people import Person, digits
from bench.midib_corpus.phrases import Phrase, letter, planted_in
from bench.midib_corpus.widened import fitting
from bench.midib_corpus.words import Words

UID_ROOT = "1.2.826.0.1.3680043.8.498."


def fresh_uid(rng: random.Random) -> str:
    return f"{UID_ROOT}{digits(rng, 36)}"


def clock(rng: random.Random) -> str:
    return f"{rng.randint(6, 22):02d}{rng.randint(0, 59):02d}{rng.randint(0, 59):02d}"


@dataclass
class Study:
    """One visit. Its texts are the same in all its objects."""

    who: Person
    uid: str
    frame: str
    day: dt.date
    time: str
    accession: str
    number: str
    description: Phrase | str
    history: Phrase | None
    alert: Phrase | str
    comment: Phrase | None
    reason: Phrase | None
    procedure: Phrase | str
    days: int


@dataclass
class Series:
    """One acquisition: `rng` draws what its instances do not share."""

    study: Study
    modality: str
    uid: str
    rng: random.Random
    own: Words
    description: Phrase | str
    protocol: Phrase | str
    step: Phrase | str
    block: str
    implicit: bool
    burned: bool = False
    technical: dict[str, str] = field(default_factory=dict)
    sources: list[tuple[str, str]] = field(default_factory=list)

    def pick(self, name: str, values: list[str]) -> str:
        """The series' value of an attribute, drawn once."""
        return self.technical.setdefault(name, self.rng.choice(values))

    @property
    def day(self) -> dt.date:
        return self.study.day


def writable(texts: Sequence[str], who: Person) -> list[str]:
    """Texts of the development half that this patient's objects can hold."""
    return fitting(texts, who.character_set)


def maybe(text: str, study: Study | tuple[Person, dt.date], rng: random.Random, share: float) -> Phrase | str:
    """`text`, with something planted in a `share` of the cases."""
    who, day = study if isinstance(study, tuple) else (study.who, study.day)
    if rng.random() >= share:
        return text
    return planted_in(text, who, rng, day) or text


def new_study(who: Person, modality: str, day: dt.date, rng: random.Random, own: Words, days: int) -> Study:
    """A study; what it says is drawn from `own`."""
    at = (who, day)
    text = rng.choice(
        own.of(
            clinical.STUDIES[modality],
            writable(widened.STUDIES[modality], who),
            unseen.STUDIES[modality],
            fresh.STUDIES[modality],
        )
    )
    history, more = rng.sample(own.of(clinical.HISTORIES, widened.HISTORIES, unseen.HISTORIES, fresh.HISTORIES), 2)
    return Study(
        who=who,
        uid=fresh_uid(rng),
        frame=fresh_uid(rng),
        day=day,
        time=clock(rng),
        accession=digits(rng, 8),
        number=digits(rng, 6),
        description=maybe(text, at, rng, 0.45),
        history=letter(history, more, who, rng, day) if rng.random() < 0.6 else None,
        alert=maybe(rng.choice(own.of(clinical.ALERTS, widened.ALERTS, unseen.ALERTS, fresh.ALERTS)), at, rng, 0.3),
        comment=letter(
            rng.choice(own.of(clinical.ADVICE, widened.ADVICE, unseen.ADVICE, fresh.ADVICE)),
            rng.choice(own.of(clinical.COMMENTS, widened.COMMENTS, unseen.COMMENTS, fresh.COMMENTS)),
            who,
            rng,
            day,
        ),
        reason=planted_in(history, who, rng, day),
        procedure=maybe(text, at, rng, 0.4),
        days=days,
    )


def new_series(study: Study, modality: str, rng: random.Random, own: Words, block: str) -> Series:
    """A series of a study."""
    return Series(
        study=study,
        modality=modality,
        uid=fresh_uid(rng),
        rng=rng,
        own=own,
        description=maybe(
            rng.choice(
                own.of(
                    clinical.SERIES[modality],
                    writable(widened.SERIES[modality], study.who),
                    unseen.SERIES[modality],
                    fresh.SERIES[modality],
                )
            ),
            study,
            rng,
            0.4,
        ),
        protocol=maybe(
            rng.choice(
                own.of(
                    clinical.PROTOCOLS[modality],
                    widened.PROTOCOLS[modality],
                    unseen.PROTOCOLS[modality],
                    fresh.PROTOCOLS[modality],
                )
            ),
            study,
            rng,
            0.35,
        ),
        step=maybe(
            rng.choice(
                own.of(
                    clinical.STUDIES[modality],
                    writable(widened.STUDIES[modality], study.who),
                    unseen.STUDIES[modality],
                    fresh.STUDIES[modality],
                )
            ),
            study,
            rng,
            0.3,
        ),
        block=block,
        implicit=rng.random() < 0.35 and "ELSCINT1" not in block,  # pydicom's VR for one of its elements is wrong
    )
