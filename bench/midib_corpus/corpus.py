"""The corpus: patients with studies, series and instances of eight modalities, as files, with their answer key.

A pure function of seed, half and size: the same arguments give the same bytes on any machine. All of it is synthetic.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.encaps import encapsulate
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian, RLELossless

from bench.midib_corpus import kinds, modules, pixels, vendors
from bench.midib_corpus.images import add_image
from bench.midib_corpus.people import Person, day_in, person
from bench.midib_corpus.recorder import Recorder
from bench.midib_corpus.reports import add_report
from bench.midib_corpus.scene import Series, Study, fresh_uid, new_series, new_study
from bench.midib_corpus.words import Half, Words
from bench.midib_score.key import Check, Instance, digest_of, write_key
from bench.midib_score.paths import indexed, read
from bench.midib_score.textrule import kept_share

# Subjects by modality, in the proportions of the challenge's sets (CT, MR, PT, DX, CR, MG, US, SR).
SHARES = {"CT": 30, "MR": 26, "PT": 12, "CR": 10, "DX": 8, "MG": 6, "US": 4, "SR": 4}
# One in this many objects of a series bears burned-in text; the challenge's validation set has 14, 18 and 3 boxes.
BURNED = {"CR": 0.45, "DX": 0.7, "MG": 0.2}
VENDOR_UID, VENDOR_NAME = "1.2.826.0.1.3680043.8.498.1", "SCANNER_1_0"


@dataclass(frozen=True, slots=True)
class Recipe:
    """What decides every byte of a corpus."""

    patients: int = 216
    seed: int = 20_240_923
    half: Half = "unseen"
    tcia_private: bool = True
    instances: tuple[int, int] = (2, 6)


@dataclass(frozen=True, slots=True)
class Made:
    """One object as it comes and as a perfect cleaner might leave it."""

    instance: Instance
    dirty: Dataset
    clean: Dataset


def make(recipe: Recipe) -> Iterator[Made]:
    """Every object of the corpus, in order."""
    rng = random.Random(f"{recipe.seed} {recipe.half}")
    own = Words(recipe.half)
    for number in range(recipe.patients):
        who = person(rng, recipe.half)
        modality = rng.choices(list(SHARES), list(SHARES.values()))[0]
        days = -rng.randint(30, 300)
        first = day_in(rng, 2006, 2019)
        for visit in range(1 + (rng.random() < 0.12)):
            study = new_study(who, modality, first + dt.timedelta(days=190 * visit), rng, own, days)
            yield from _study_objects(study, modality, rng, own, f"{number:04d}-{visit}", recipe)


def _study_objects(
    study: Study, modality: str, rng: random.Random, own: Words, name: str, recipe: Recipe
) -> Iterator[Made]:
    blocks = vendors.BLOCKS[modality]
    block = rng.choice(blocks)
    sources: list[tuple[str, str]] = []
    for number in range(1 + (rng.random() < 0.3)):
        series = new_series(study, modality, rng, own, block)
        series.burned = rng.random() < BURNED.get(modality, 0)
        series.sources = list(sources)
        if modality == "SR":
            series.sources = [(kinds.SOP_CLASSES["CT"], fresh_uid(rng)) for _ in range(2)]
        for at in range(1 if modality == "SR" else rng.randint(*recipe.instances)):
            uid = fresh_uid(rng)
            yield _object(study.who, series, uid, at + 1, f"{name}-{number}-{at:03d}.dcm", recipe)
            sources.append((kinds.SOP_CLASSES[modality], uid))


def _object(who: Person, series: Series, uid: str, number: int, file: str, recipe: Recipe) -> Made:
    rec = Recorder(Dataset(), Dataset(), [], series.study.days, rare=series.uid)
    modules.add_patient(rec, series)
    modules.add_study(rec, series)
    modules.add_series(rec, series)
    modules.add_equipment(rec, series)
    modules.add_instance(rec, series, uid, number)
    data = b""
    if series.modality == "SR":
        add_report(rec, series)
    else:
        data = add_image(rec, series, tcia_private=recipe.tcia_private)
    compressed = bool(data) and not series.burned and series.modality in ("CR", "DX") and series.rng.random() < 0.3
    syntax = ImplicitVRLittleEndian if series.implicit else ExplicitVRLittleEndian
    if compressed:
        syntax = RLELossless
        data = encapsulate(pixels.rle([data]))
        for image in (rec.dirty, rec.clean):
            pixels.set_pixels(image, data)
            image["PixelData"].VR = "OB"
            image["PixelData"].is_undefined_length = True
        rec.checks[:] = [check if check.action != "pixels_retained" else _digested(check, data) for check in rec.checks]
    for image in (rec.dirty, rec.clean):
        image.file_meta = FileMetaDataset()
        image.file_meta.TransferSyntaxUID = syntax
        image.file_meta.MediaStorageSOPClassUID = image.SOPClassUID
        image.file_meta.MediaStorageSOPInstanceUID = image.SOPInstanceUID
        image.file_meta.ImplementationClassUID = VENDOR_UID
        image.file_meta.ImplementationVersionName = VENDOR_NAME
    study = series.study
    row = (file, series.modality, kinds.SOP_CLASSES[series.modality], who.mrn, study.uid, series.uid, uid)
    return Made(Instance(*row, digest_of(data), tuple(rec.checks)), rec.dirty, rec.clean)


def _digested(check: Check, data: bytes) -> Check:
    return Check(check.action, check.tag_ds, check.tag_name, check.value, digest_of(data), check.answer_category)


def as_stored(instance: Instance, path: Path) -> Instance:
    """The checks with values as a reader of the stored file gets them: implicit VR makes UN of a private element."""
    table = indexed(read(path))
    checks = []
    for asked in instance.checks:
        check, text = asked, table.get(asked.tag_ds)
        if text is not None and '"' in check.tag_ds:
            told = check.action == "text_removed" and kept_share(check.action_text, text) > 0
            whole = check.action in ("text_retained", "tag_retained", "text_removed") and not told
            expected = text if whole else check.action_text
            check = Check(check.action, check.tag_ds, check.tag_name, text, expected, check.answer_category)
        checks.append(check)
    row = (instance.file, instance.modality, instance.sop_class, instance.patient, instance.study, instance.series)
    return Instance(*row, instance.sop_instance, instance.digest, tuple(checks))


def write_corpus(folder: Path, recipe: Recipe, *, each: Callable[[], None] = lambda: None, twins: bool = False) -> int:
    """`folder/dirty/*.dcm`, `folder/key.sqlite`, with `twins` also `folder/clean/*.dcm`. How many objects there are."""
    dirty, clean = folder / "dirty", folder / "clean"
    dirty.mkdir(parents=True)
    if twins:
        clean.mkdir()
    instances = []
    for made in make(recipe):
        path = dirty / made.instance.file
        made.dirty.save_as(path, enforce_file_format=True)
        if twins:
            made.clean.save_as(clean / made.instance.file, enforce_file_format=True)
        instances.append(as_stored(made.instance, path))
        each()
    write_key(folder / "key.sqlite", instances)
    return len(instances)
