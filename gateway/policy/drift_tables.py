"""Rows of PS3.15's tables in the form of the data files: one shape for the shipped tables and for another edition's.

`tools/generate_standard.py` writes files of these rows, `policy drift` compares them. A cell that is not known stops
everything: a wrong table is worse than an old one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pydicom.datadict import keyword_for_tag

from gateway.policy.standard import BASIC_CODES, OPTIONS, PRIVATE

FIELDS = ("tag", "keyword", "retired", "in_std_comp_iod", "basic", "options")
CONTENT_FIELDS = ("code", "scheme", "meaning", "value_type", "retired", "basic", "options")
SAFE_FIELDS = ("creator", "group", "element", "vr", "meaning")
OPTION_CELLS = frozenset({"", "K", "C", "U"})

# Column of the reviewed CSV form -> option.
CSV_COLUMNS = dict(
    zip(
        (
            *("rtn_safe_priv", "rtn_uids", "rtn_dev_id", "rtn_inst_id", "rtn_pat_chars", "rtn_long_full_dates"),
            *("rtn_long_modif_dates", "clean_desc", "clean_struct_cont", "clean_graph"),
        ),
        OPTIONS,
        strict=True,
    )
)
CONTENT_COLUMNS = {
    column: option
    for column, option in CSV_COLUMNS.items()
    if column not in ("rtn_safe_priv", "clean_struct_cont", "clean_graph")
}

Cells = Mapping[str, str]
Rows = list[dict[str, str]]


class SourceError(Exception):
    """The source is not what this version knows. The text quotes the standard, never a data set."""


def squeezed(text: str) -> str:
    """Without spaces, line breaks and the zero-width spaces that the standard puts into long words."""
    return re.sub(r"[\s\u200b]", "", text)


def tag_form(text: str) -> str:
    """The file's form of "(0010,0010)", "00100010", "(50xx,xxxx)" or "(gggg,eeee) where gggg is odd"."""
    bare = re.sub(r"[()]", "", squeezed(text))
    if bare.lower() == "gggg,eeeewhereggggisodd":
        return PRIVATE
    plain = bare.replace(",", "")
    if re.fullmatch(r"[0-9A-Fa-f]{8}", plain):
        return plain.upper()
    if re.fullmatch(r"(50xxxxxx|60xx[0-9A-Fa-f]{4})", plain, re.IGNORECASE):
        return plain.upper().replace("X", "x")
    raise SourceError(f"a tag in a form that is not known: {text!r}")


def keyword_of(tag: str) -> str:
    """The keyword of a tag in file form; repeating groups by their first group; "" where the dictionary has none."""
    if tag in (PRIVATE, "50xxxxxx"):
        return ""
    return keyword_for_tag(int(tag.replace("x", "0"), 16))


def _coded(place: str, basic: str, options: Cells, flags: Cells) -> tuple[str, str]:
    """Basic Profile code and option cells of a row. Raises SourceError for what Table E.1-1a does not define."""
    code = squeezed(basic)
    if code not in BASIC_CODES:
        raise SourceError(f"{place}: Basic Profile code {code!r} is not in Table E.1-1a")
    bad = [name for name, flag in flags.items() if flag not in ("Y", "N")]
    bad += [name for name, cell in options.items() if cell not in OPTION_CELLS]
    if bad:
        raise SourceError(f"{place}: a cell that is not known: {', '.join(bad)}")
    return code, " ".join(f"{name}={options[name]}" for name in OPTIONS if options.get(name))


def row_of(cells: Cells, options: Cells, keyword: str | None = None) -> dict[str, str]:
    """One row of Table E.1-1 in the file's form. `options` maps an option's name to its cell."""
    tag = tag_form(cells["tag"])
    flags = {name: cells[name].strip()[:1] for name in ("retired", "in_std_comp_iod")}
    basic, written = _coded(tag, cells["basic"], options, flags)
    word = keyword_of(tag) if keyword is None else keyword
    return {"tag": tag, "keyword": word, **flags, "basic": basic, "options": written}


def content_rows(source: Iterable[Cells]) -> Rows:
    """Table E.3.4-1 in the file's form, by scheme, code and value type."""
    found = []
    for row in source:
        options = {option: row[column].strip() for column, option in CONTENT_COLUMNS.items()}
        flags = {"retired": row["retired"].strip()[:1]}
        basic, written = _coded(row["code_value"], row["basic"], options, flags)
        found.append(
            {
                "code": row["code_value"],
                "scheme": row["coding_scheme_designator"],
                "meaning": row["code_meaning"],
                "value_type": row["value_type"],
                **flags,
                "basic": basic,
                "options": written,
            }
        )
    return sorted(found, key=lambda row: (row["scheme"], row["code"], row["value_type"]))


def safe_rows(source: Iterable[Cells]) -> Rows:
    """Table E.3.10-1, by creator, group and element. `vr` has "/" for a choice and is "" where the table has none."""
    found = []
    for row in source:
        group, element = row["group"].upper(), row["element_offset"].upper()
        if not re.fullmatch(r"[0-9A-F]{4}", group) or not re.fullmatch(r"[0-9A-F]{2}", element):
            raise SourceError(
                f"a private element in a form that is not known: ({row['group']},xx{row['element_offset']})"
            )
        found.append(
            {
                "creator": row["private_creator"],
                "group": group,
                "element": element,
                "vr": row["vr"],
                "meaning": row["meaning"],
            }
        )
    return sorted(found, key=lambda row: (row["creator"], row["group"], row["element"]))
