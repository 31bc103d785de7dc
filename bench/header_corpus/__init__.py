"""Files for `bench.header`: generated CT and MR objects of a usual size, and pydicom's own test files."""

from __future__ import annotations

import random
import shutil
import warnings
from pathlib import Path

import pydicom
from pydicom.data import get_testdata_files
from pydicom.datadict import private_dictionary_VR
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset
from pydicom.tag import Tag
from pydicom.uid import UID

from bench.midib_corpus import pixels
from bench.midib_corpus.corpus import Recipe, make

PIXELS = 416 * 416 * 2  # with the header 348 KB, the mean of performance.md's corpus
SERIES = 30  # objects of a series; scanners make 20 to 400
NOT_FOR_ALL = ("Directory", "Structured", "Report", "SR ", "Document", "Key Object", "Encapsulated", "Private")


# What the generator draws anew for every object, and a scanner writes once for its series.
TEXTS = ("PatientComments", "DerivationDescription", "ImageComments", "ContrastBolusAgent")


def write_large(folder: Path, count: int, *, texts_differ: bool = True) -> None:
    """`count` CT and MR objects. `texts_differ`: each of a series has its own comments, with identity planted in them;
    otherwise all have those of the first.
    """
    folder.mkdir()
    first: dict[str, Dataset] = {}
    rng = random.Random(5)
    data = rng.randbytes(PIXELS)
    number = 0
    for made in make(Recipe(patients=count, half="development", instances=(SERIES, SERIES))):
        if made.instance.modality not in ("CT", "MR"):
            continue
        image = made.dirty
        image.Rows = image.Columns = 416
        pixels.set_pixels(image, data)
        _fill(image)
        if not texts_differ:
            _say_the_same(image, first.setdefault(image.SeriesInstanceUID, image))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image.save_as(folder / f"{number:04d}.dcm", enforce_file_format=True)
        number += 1
        if number == count:
            return


def _say_the_same(image: Dataset, first: Dataset) -> None:
    for keyword in TEXTS:
        if keyword in first:
            image[keyword] = first[keyword]
        elif keyword in image:
            del image[keyword]


def _fill(image: Dataset) -> None:
    """As scanners write them: references to other images, and a private block full of numbers."""
    for keyword in ("ReferencedImageSequence", "SourceImageSequence"):
        image.add(DataElement(Tag(keyword), "SQ", []))
        for number in range(12):
            item = Dataset()
            item.ReferencedSOPClassUID = image.SOPClassUID
            item.ReferencedSOPInstanceUID = UID(f"{image.StudyInstanceUID[:40]}.{number}")
            image[keyword].value.append(item)
    block = image.private_block(0x0043, "GEMS_PARM_01", create=True)
    for offset in range(0x01, 0x50):
        try:
            vr = private_dictionary_VR(block.get_tag(offset), "GEMS_PARM_01")
        except KeyError:
            continue
        if vr in ("SS", "US", "SL", "DS"):
            block.add_new(offset, vr, offset)


def elements_each(folder: Path) -> int:
    """The mean number of elements of a file, at every depth."""
    counts = []
    for path in folder.iterdir():
        image = pydicom.dcmread(path, stop_before_pixels=True)
        counts.append(sum(1 for _ in image.iterall()))
    return round(sum(counts) / len(counts))


def write_mixed(folder: Path) -> int:
    """pydicom's test files that are images of the standard with a Patient ID. How many."""
    folder.mkdir()
    number = 0
    for name in sorted(get_testdata_files("**/*.dcm")):
        path = Path(name)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                image = pydicom.dcmread(path, stop_before_pixels=True)
                sop_class = UID(str(image.get("SOPClassUID", "")))
        except (OSError, ValueError, pydicom.errors.InvalidDicomError):
            continue
        wanted = "Storage" in sop_class.name and not any(word in sop_class.name for word in NOT_FOR_ALL)
        if wanted and image.get("PatientID") and path.stat().st_size < 2_000_000:
            shutil.copyfile(path, folder / f"{number:03d}.dcm")
            number += 1
    return number
