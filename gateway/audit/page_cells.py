"""The columns of the report's tables: name, and how a cell is read out of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, Any]
Cells = tuple[tuple[str, Callable[[Row], str]], ...]


def _text(*keys: str) -> Callable[[Row], str]:
    return lambda row: str(_at(row, keys))


def _share(*keys: str) -> Callable[[Row], str]:
    return lambda row: f"{100 * float(_at(row, keys)):.1f} %"


def _figure(*keys: str) -> Callable[[Row], str]:
    return lambda row: f"{float(_at(row, keys)):.3f}"


def _at(row: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        row = row[key]
    return row


_D_SYS: Cells = (
    ("D_sys", _figure("d_sys", "value")),
    ("upper", _figure("d_sys", "upper")),
    ("shuffled", _figure("d_sys", "null_mean")),
    ("excess, upper", _figure("d_sys", "excess_upper")),
    ("p", _figure("d_sys", "p")),
)
_WHO: Cells = (("encoder", _text("encoder")), ("metric", _text("metric")))
LINKAGE: Cells = (
    *_WHO,
    *_D_SYS,
    ("AUC", _figure("auc")),
    ("EER", _figure("eer")),
    ("rank-1, leave one out", _share("rank1", "rank1")),
    ("upper", _share("rank1", "upper")),
    ("gallery", _text("fixed_gallery", "gallery")),
    ("rank-1, one mate", _share("fixed_gallery", "rank1")),
    ("upper", _share("fixed_gallery", "upper")),
    ("chance", _share("fixed_gallery", "chance")),
)
ATTACKS: Cells = (
    *_WHO,
    ("attack", lambda row: str(row["attack"]).replace("_", " ")),
    ("D_sys before", _figure("d_sys_before", "value")),
    *_D_SYS,
    ("rank-1 before", _share("rank1_before")),
    ("rank-1, one mate", _share("fixed_gallery", "rank1")),
    ("upper", _share("fixed_gallery", "upper")),
    ("chance", _share("fixed_gallery", "chance")),
    ("void", lambda row: "void" if row["void"] else ""),
)
RELEASE: Cells = (
    ("level", _text("level")),
    ("encoder", _text("encoder")),
    ("gallery", _text("view")),
    ("metric", _text("metric")),
    ("attack", lambda row: str(row["attack"]).replace("_", " ")),
    *_D_SYS,
    ("rank-1, one mate", _share("fixed_gallery", "rank1")),
    ("upper", _share("fixed_gallery", "upper")),
    ("chance", _share("fixed_gallery", "chance")),
    ("alpha", _figure("alpha")),
)
PROBES: Cells = (
    ("level", _text("level")),
    ("encoder", _text("encoder")),
    ("attribute", _text("attribute")),
    ("before", _share("before", "balanced_accuracy")),
    ("after", _share("after", "balanced_accuracy")),
    ("upper", _share("after", "upper")),
    ("limit", lambda row: "" if row["limit"] is None else f"{100 * row['limit']:.1f} %"),
    ("chance", _share("after", "chance")),
)
SECTIONS: tuple[tuple[str, str, Cells, str], ...] = (
    (
        "attributes",
        "What can be inferred",
        (
            ("encoder", _text("encoder")),
            ("attribute", _text("attribute")),
            ("where", _text("where")),
            ("balanced accuracy", _share("balanced_accuracy")),
            ("lower", _share("lower")),
            ("upper", _share("upper")),
            ("precision", _share("precision")),
            ("chance", _share("chance")),
            ("p", _figure("p")),
            ("people", _text("people")),
        ),
        "random forest, folds without common people; by person; control for head size before blaming anatomy",
    ),
    (
        "worst_people",
        "Worst people",
        (
            *_WHO,
            ("people", _text("people")),
            ("found each time", _text("always_found")),
            ("never found", _text("never_found")),
            ("mean", _share("mean")),
            ("95th percentile", _share("percentile_95")),
        ),
        "share of a person's scans that are matched at rank 1",
    ),
    ("time_gap", "By time between the scans", (*_WHO, ("gap", _text("gap")), *_D_SYS), "mated pairs in each range"),
    (
        "strata",
        "By group",
        (*_WHO, ("attribute", _text("attribute")), ("value", _text("value")), ("people", _text("people")), *_D_SYS),
        "bounds are not corrected for the number of groups that are looked at",
    ),
    (
        "mates",
        "By mates per query",
        (
            *_WHO,
            ("mates", _text("mates")),
            ("gallery", _text("gallery")),
            ("rank-1", _share("rank1")),
            ("upper", _share("upper")),
            ("chance", _share("chance")),
            ("people", _text("people")),
        ),
        "a gallery of people, each with as many scans of other visits; rank-1 rises with them, D_sys does not",
    ),
    (
        "capped",
        "Two to five scans of each person",
        (
            *_WHO,
            ("rank-1, all scans", _share("rank1_full")),
            ("capped, mean", _share("rank1_capped_mean")),
            ("sd", _share("rank1_capped_sd")),
        ),
        "ten random subsamples; rank-1 rises with the mates that a query has",
    ),
)
