"""Subjects as recon-all leaves them: the lines of its tables, with numbers that a test can add up."""

from __future__ import annotations

from pathlib import Path

# fmt: off
REGIONS = [
    "bankssts", "caudalanteriorcingulate", "caudalmiddlefrontal", "cuneus", "entorhinal", "fusiform",
    "inferiorparietal", "inferiortemporal", "isthmuscingulate", "lateraloccipital", "lateralorbitofrontal",
    "lingual", "medialorbitofrontal", "middletemporal", "parahippocampal", "paracentral", "parsopercularis",
    "parsorbitalis", "parstriangularis", "pericalcarine", "postcentral", "posteriorcingulate", "precentral",
    "precuneus", "rostralanteriorcingulate", "rostralmiddlefrontal", "superiorfrontal", "superiorparietal",
    "superiortemporal", "supramarginal", "frontalpole", "temporalpole", "transversetemporal", "insula",
]
# fmt: on
STRUCTURES = {
    **{f"{side}-Lateral-Ventricle": 8000.5 for side in ("Left", "Right")},
    **{f"{side}-Inf-Lat-Vent": 300.25 for side in ("Left", "Right")},
    **{f"{side}-Thalamus": 7000 for side in ("Left", "Right")},
    **{f"{side}-Caudate": 3500 for side in ("Left", "Right")},
    **{f"{side}-Putamen": 5000 for side in ("Left", "Right")},
    **{f"{side}-Pallidum": 1900 for side in ("Left", "Right")},
    "3rd-Ventricle": 1100,
    "Brain-Stem": 21000,
    "Left-Hippocampus": 4000,
    "Right-Hippocampus": 4100,
    "Left-Amygdala": 1500,
    "Right-Amygdala": 1600,
}


def write_subject(folder: Path, *, version: int = 7, skip: str = "", scale: float = 1.0) -> Path:
    """`version` 5 has the older names; `skip` leaves out lines that contain it."""
    stats = folder / "stats"
    stats.mkdir(parents=True)
    older = version < 7
    head = "IntraCranialVol, ICV" if version < 5 else "EstimatedTotalIntraCranialVol, eTIV"
    white = "CorticalWhiteMatter, CorticalWhiteMatterVol" if older else "CerebralWhiteMatter, CerebralWhiteMatterVol"
    lines = [
        "# Title Segmentation Statistics",
        f"# subjectname {folder.name}",
        f"# Measure Cortex, CortexVol, Total cortical gray matter volume, {450000 * scale}, mm^3",
        f"# Measure {white}, Total cerebral white matter volume, {430000 * scale}, mm^3",
        f"# Measure SubCortGray, SubCortGrayVol, Subcortical gray matter volume, {55000 * scale}, mm^3",
        f"# Measure {head}, Estimated Total Intracranial Volume, {1500000 * scale}, mm^3",
        "# ColHeaders  Index SegId NVoxels Volume_mm3 StructName normMean normStdDev normMin normMax normRange",
    ]
    for i, (name, volume) in enumerate(STRUCTURES.items(), 1):
        shown = name.replace("Thalamus", "Thalamus-Proper") if older else name
        lines.append(f"{i:3d} {i:3d}  {int(volume)}  {volume * scale}  {shown}  50.0 8.0 20.0 90.0 70.0")
    _write(stats / "aseg.stats", lines, skip)
    for side, thickness, area in (("lh", 2.4, 80000.0), ("rh", 2.6, 82000.0)):
        lines = [
            f"# hemi {side}",
            f"# Measure Cortex, NumVert, Number of Vertices, {120000}, unitless",
            f"# Measure Cortex, WhiteSurfArea, White Surface Total Area, {area}, mm^2",
            f"# Measure Cortex, MeanThickness, Mean Thickness, {thickness}, mm",
            "# ColHeaders StructName NumVert SurfArea GrayVol ThickAvg ThickStd MeanCurv GausCurv FoldInd CurvInd",
        ]
        for i, region in enumerate(REGIONS):
            base = 100 * (side == "rh") + i
            lines.append(f"{region:32s} 1400 {1000 + base} {2000 + base} {1 + base / 1000:.3f} 0.5 0.1 0.03 12 1.9")
        _write(stats / f"{side}.aparc.stats", lines, skip)
    return folder


def _write(path: Path, lines: list[str], skip: str) -> None:
    path.write_text("".join(f"{line}\n" for line in lines if not skip or skip not in line))
