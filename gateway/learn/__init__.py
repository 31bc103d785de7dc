"""Cohorts as DICOM and back: what lets the whole gateway run on people who do not exist.

`write_dicom` writes a cohort as series of real objects, `read_dicom` makes a cohort of any folder of DICOM.
"""

from gateway.learn.reading import read_dicom
from gateway.learn.writing import MASKS, write_dicom

__all__ = ["MASKS", "read_dicom", "write_dicom"]
