"""Words that are common in technical headers, so that a person who bears one as a name does not stop every study.

A name part in here ("HEAD", "White", "Philips", "Dixon") counts only as part of a whole name, or as the whole value of
an element for names; together with another part of the same name ("White Marjorie") it counts everywhere. The words
come from the standard's dictionary, from its anatomy and modality concepts, and from the list below.

Also values that stand in for a removed one: finding them again says nothing about a person.
"""

from __future__ import annotations

import re
from functools import cache

from pydicom._dicom_dict import DicomDictionary
from pydicom.sr._cid_dict import cid_concepts

from gateway.gate.folding import fold

_CONTEXT_GROUPS = (4, 12, 29, 33, 244, 4031, 7151, 7152, 7153, 7157, 7159)
_EPONYMS = frozenset({"boyd", "dodd", "willis", "hunterian"})  # in anatomy, yet names first of all

_LISTED = """
acuson agfa allura ambition analogic aquilion artis ascension avanto axiom barco biograph bruker canon carestream
cirrus definition discovery elekta esaote espree fuji fujifilm gemini gendex general electric hitachi hologic
illumina imatron ingenia intera kodak konica logiq lodox lumify mindray minolta mobilett optima orthanc osirix
philips picker planmeca revolution samsung sectra sensation sequoia shimadzu siemens healthineers signa sirona
skyra somatom sonosite symbia symphony synapse tomotherapy toshiba trio triotim varian verio vitrea vivid voluson
ziehm zeiss medical systems health care healthcare company corporation limited gmbh holding software version
release workstation server viewer syngo gems

blade bloch bucky butterworth caldwell compton cube dixon drive dual epic ernst fast fiesta flair flash fourier
gauss gaussian gradient grappa grass grid hahn hamming hann hanning haste hounsfield inversion judet kernel larmor
lauenstein lava logan merchant mprage nyquist parallel poisson propeller radon ramp recovery resolve sense shepp
sharp smooth soft space spin spoiled star stenvers stir thrive towne trufi turbo twist vibe vista waters wiener

academic adult baby boy child children city clinic clinical county department district doctor east emergency female
field girl hall hospital house imaging infant institute international male mary memorial national newborn north
northern park patient pediatric practice private radiology regional research royal saint school section service
south southern state street trauma unit university unknown urgent veterans ward west western women

above acute admin after anon anonym anonymous application april arms august automatic average basic before bed
below best black blood blue bold bone both bottom brown center centre clear clean code coil cold contrast control
copy cross daily dark date data default delay demo dose down early easy edge empty engine error exam example extra
false feet film final fine first flat flow focus free front full gate gold good gray green grey half hard high home
hold image import index inner input iron january july june keep king large last late left level light line long
loop lower main manual march maximum mean method mild minimum mixed model none normal note object october open
operator option order other outer page pass peak phantom phase pixel plain plan plane plus point post power prior
process processed product profile protocol pulse pure quality quick rapid rate rays real rear record reference
region removed repeat rest result review rich right ring rise road rock root rose round safe sample scan scout
screen second series serial setup shape short side signal silver simple single site slice slow small solid sound
source standard start step stone stop strong study summer table target tech technician technologist test time
timing tissue title total track trial true type upper user value view visit volume wait wall warm wave weak weight
well white wide wild winter wood work world wrong yellow young zero
"""

# Written by scrubbers and by systems that do not know: no identity, even in the place where it was before.
_STAND_INS = """
na none null unknown undefined unspecified anon anonym anonymous anonymized anonymised anonymize anonymise
anonymized^anonymized deidentified de-identified de_identified deid redacted removed masked dummy blank empty
not_available n/a no_name noname no^name x xx xxx xxxx ^ - . ? other unk value correct unaltered 030y 0
"""
# Common as identifiers and names: never searched for, yet compared in place.
_COMMON = """
00 000 0000 00000 000000 0000000 00000000 000000000 0000000000 1 test patient o no 12345 123456 1234567 12345678
123456789 1234567890
"""

# Dates that stand for "no date", in systems and in scrubbers.
STAND_IN_DATES = frozenset(
    {"00010101", "11111111", "18000101", "18581117", "19000101", "19010101", "19500101", "19600101", "19700101"}
    | {"19800101", "19850101", "19900101", "20000101", "20010101", "29991231", "99991231"}
)
SCRUBBER_DATES = frozenset({"00010101", "19000101", "19700101", "20000101"})
STAND_IN_TIMES = frozenset({"", "0", "00", "0000", "000000", "120000", "1200", "12", "235959", "010101"})


@cache
def common_words() -> frozenset[bytes]:
    """Folded words of four letters and more."""
    words = set(_LISTED.split())
    for _, _, name, _, _ in DicomDictionary.values():
        words.update(re.findall(r"[a-z]{4,}", name.lower()))
    for group in _CONTEXT_GROUPS:
        for names in cid_concepts.get(group, {}).values():
            for name in names:
                words.update(word.lower() for word in re.findall(r"[A-Z][a-z]{3,}", name))
    return frozenset(fold(word) for word in words - _EPONYMS)


@cache
def stand_ins() -> frozenset[bytes]:
    """Folded values that replace a removed one."""
    return frozenset(fold(word) for word in _STAND_INS.split()) | {b""}


@cache
def common_values() -> frozenset[bytes]:
    """Folded values that are nobody's identifier and nobody's name, stand-ins among them."""
    return stand_ins() | frozenset(fold(word) for word in _COMMON.split())
