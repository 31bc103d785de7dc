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
    ("at most", _figure("d_sys", "upper")),
    ("shuffled", _figure("d_sys", "null_mean")),
    ("excess, at most", _figure("d_sys", "excess_upper")),
    ("p", _figure("d_sys", "p")),
)
_WHO: Cells = (("encoder", _text("encoder")), ("distance", _text("metric")))
_ONE_MATE: Cells = (
    ("rank-1, one mate", _share("fixed_gallery", "rank1")),
    ("at most", _share("fixed_gallery", "upper")),
    ("chance", _share("fixed_gallery", "chance")),
)
LINKAGE: Cells = (*_WHO, *_D_SYS, ("AUC", _figure("auc")), ("EER", _figure("eer")))
FOUND: Cells = (
    *_WHO,
    ("people asked about", _text("rank1", "people")),
    ("among people", _text("fixed_gallery", "gallery")),
    *_ONE_MATE,
    ("rank-1, leave one out", _share("rank1", "rank1")),
    ("by person, at most", _share("rank1", "upper")),
)
VERSUS: Cells = (
    ("encoder", _text("encoder")),
    ("D_sys, Canberra", _figure("canberra", "d_sys", "value")),
    ("at most", _figure("canberra", "d_sys", "upper")),
    ("D_sys, cosine", _figure("cosine", "d_sys", "value")),
    ("at most", _figure("cosine", "d_sys", "upper")),
    ("rank-1, Canberra", _share("canberra", "rank1", "rank1")),
    ("rank-1, cosine", _share("cosine", "rank1", "rank1")),
)
ATTACKS: Cells = (
    *_WHO,
    ("attack", lambda row: str(row["attack"]).replace("_", " ")),
    ("D_sys before", _figure("d_sys_before", "value")),
    *_D_SYS,
    ("rank-1 before", lambda row: "" if row["rank1_before"] is None else f"{100 * row['rank1_before']:.1f} %"),
    *_ONE_MATE,
    ("void", lambda row: "void" if row["void"] else ""),
)
RELEASE: Cells = (
    ("level", _text("level")),
    ("encoder", _text("encoder")),
    ("gallery", _text("view")),
    ("distance", _text("metric")),
    ("attack", lambda row: str(row["attack"]).replace("_", " ")),
    *_D_SYS,
    *_ONE_MATE,
    ("alpha", _figure("alpha")),
)
PROBES: Cells = (
    ("level", _text("level")),
    ("encoder", _text("encoder")),
    ("attribute", _text("attribute")),
    ("before", _share("before", "balanced_accuracy")),
    ("after", _share("after", "balanced_accuracy")),
    ("at most", _share("after", "upper")),
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
            ("at least", _share("lower")),
            ("at most", _share("upper")),
            ("precision", _share("precision")),
            ("chance", _share("chance")),
            ("p", _figure("p")),
            ("people", _text("people")),
            ("left out", _text("left_out")),
        ),
        (
            "by a random forest, by person; where: within these people, or from one data set to another; left out: "
            "people without a value, or with one that fewer than 5 have"
        ),
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
        "By how many scans of a person the attacker holds",
        (
            *_WHO,
            ("other scans of the person", _text("mates")),
            ("among people", _text("gallery")),
            ("rank-1", _share("rank1")),
            ("at most", _share("upper")),
            ("chance", _share("chance")),
            ("people", _text("people")),
        ),
        "each of the people has as many scans of other visits there; rank-1 rises with them, D_sys does not",
    ),
    (
        "capped",
        "Two to five scans of each person",
        (
            *_WHO,
            ("rank-1, all scans", _share("rank1_full")),
            ("2 to 5 scans, mean", _share("rank1_capped_mean")),
            ("standard deviation", _share("rank1_capped_sd")),
        ),
        "ten random choices of scans: how much of rank-1 comes from people with many scans",
    ),
)
