"""What the cleaner passes over quickly it finds all the same: each short way against its slow one."""

from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st
from planted_words import own

from gateway.header import descriptors_patterns as patterns
from gateway.header.descriptors_addresses import _GERMANIC
from gateway.header.descriptors_folding import fold, spellings
from gateway.header.descriptors_own import LABEL, NAME, NUMBER, Said

NUMBER_AHEAD = r"(?=[\wäöüßåæø.-]*+\s+\d)"
SLOW_GERMANIC = re.compile(_GERMANIC.replace(NUMBER_AHEAD, ""), re.IGNORECASE)
SLOW_FORMS = re.compile(
    "|".join((*patterns._NET, *patterns._WITH_DIGITS)).replace(NUMBER_AHEAD, "").replace(r"[\w.+-]++", r"[\w.+-]+"),
    re.IGNORECASE,
)
_PIECES = (
    "Bahnhofstr. Bahnhofstraße Hauptſtraſse HauptSTRASSE GOETHEPLATZ Am-Weg Kirchweg Østergade Kungsgatan Zum.Damm "
    "Keizersgracht weg platz Str. 12 3b 10. 79100 Freiburg D-79100 0123 a 1.2 , . - ( ) : @ a@b j.doe@host.example "
    "j.doe x+y http:// HTTPS://a sftp://x ftp:a file: mailto:a.b wado: sfile:// 030-1234567 +49 (030) MRN 4711 tel. "
    "1.2.840.10008.1.2 1.2.3.4.5.6.7 512x512 256 100-500-1000 555-123-4567 Apt 4 12 Elm Road, Springfield, PA 12345 "
    "ſtraße İstanbul straSSe\u212aade ÉCOLE Łódź T1 TSE LONGWORDWITHOUTEND İ ß ẞ \u0130weg"
)
PIECES = _PIECES.split()
texts = st.lists(
    st.one_of(st.sampled_from(PIECES), st.text("aSstrweg.-ß \n@19+", max_size=8)), min_size=1, max_size=9
).flatmap(lambda parts: st.sampled_from([" ", "", "\n", ", "]).map(lambda glue: glue.join(parts)))


@settings(deadline=None, max_examples=400)
@given(texts)
@example("Bahnhofstraße\u2003 12 Hof")
@example("Am Weg-Platz.Str. 7")
@example("see a+b@c and x y@ z, https://a/b 1.2.840.10008.1.2")
def test_a_look_ahead_loses_no_form(text: str) -> None:
    assert [m.span() for m in re.compile(_GERMANIC, re.IGNORECASE).finditer(text)] == [
        m.span() for m in SLOW_GERMANIC.finditer(text)
    ]
    assert [m.span() for m in patterns._FORMS.finditer(text)] == [m.span() for m in SLOW_FORMS.finditer(text)]


@settings(deadline=None, max_examples=200)
@given(texts)
@example("1.2.840.10008.1.2 and 1.2.3.4.5.6.7.8")
@example("MRN 47111, call 555-123-4567, https://a")
def test_a_form_without_a_group_is_taken_as_one_whose_groups_were_all_asked(text: str) -> None:
    slow = []
    marked = any(mark in text for mark in "@:.\\") or text.count("-") >= 5
    if patterns._has_numbers(text) or (marked and patterns._MAYBE_NET.search(text)):
        for match in (patterns._FORMS if marked else patterns._NUMERIC).finditer(text):
            span = next((match.span(name) for name in patterns._NUMBERS_ONLY if match[name]), match.span())
            grouped = match["grouped"] or match["called"] or match["thrice"]
            sizes = grouped and patterns._are_sizes(grouped, text[: span[0]])
            if text[slice(*span)] not in patterns.UID_dictionary and not sizes:
                slow.append((*span, bool(match["street"])))
    assert list(patterns.forms_in(text)) == slow


OWN = own(
    Said(NAME, "Müller-Long^Jörg K"), Said(NAME, "Head^Kevin"), Said(NUMBER, "ZZ-0047110"), Said(LABEL, "LEAK0001")
)


@settings(deadline=None, max_examples=200)
@given(st.one_of(st.sampled_from(["Muller", "MUELLER", "Jörg", "long", "k", "head", "47110", "leak0001"]), st.text()))
def test_a_token_is_weak_in_the_names_of_all_its_spellings(token: str) -> None:
    if fold(token):
        slow = frozenset(number for one in spellings(token) for number in OWN.weak.get(one, ()))
        assert OWN.trait(token).weak == slow
