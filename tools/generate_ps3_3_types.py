"""Write `policies/standard/ps3_3_types_<edition>.json`: which attribute is Type 1 or 2, where, in which IOD (PS3.3).

    python tools/generate_ps3_3_types.py --edition 2026b --taken 2026-11-30

The source is the tables that highdicom carries (`highdicom/_standard/*.json`, generated from PS3.3); highdicom is
needed to run this, never to run the gateway. Only what the header stage asks is written: attributes of Table E.1-1
whose code depends on the Type, and text, names, dates and addresses beyond the table. A place is the enclosing
sequence's keyword ("" at top level): PS3.3 gives one Type for nearly every pair of sequence and attribute, and the
stricter one is taken where it gives two. A module that an IOD may leave out and that requires nothing but one attribute
(Graphic Annotation, Waveform Annotation, Timezone) is not counted: without the attribute, it is absent as a whole.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

from pydicom.datadict import dictionary_VR, keyword_dict

from gateway.policy.standard import FOLDER, load_table

TYPE_FREE = frozenset({"U", "X/Z/U*"})  # codes that no Type changes
BEYOND_VRS = frozenset({"LO", "LT", "SH", "ST", "UC", "UT", "UR", "AE", "PN", "DA", "DT", "TM"})


def vr_of(keyword: str) -> str:
    """VR in PS3.6; "SQ" for attributes that pydicom does not know yet (only their place matters)."""
    return dictionary_VR(keyword) if keyword in keyword_dict else "SQ"


def relevant(keyword: str, basics: dict[str, str]) -> bool:
    """True when some decision of the header stage depends on the attribute's Type."""
    code = basics.get(keyword)
    if code is None:
        return vr_of(keyword) in BEYOND_VRS
    return code not in TYPE_FREE and not (code == "D" and vr_of(keyword) != "SQ")


def stands_alone(attributes: list[dict[str, Any]], keyword: str) -> bool:
    """True when `keyword` is the only attribute that the module requires at its top level."""
    return {one["keyword"] for one in attributes if not one["path"] and str(one["type"])[0] in "12"} == {keyword}


def build(source: Path) -> dict[str, Any]:
    """The data file's contents: sorted module names, modules of each SOP class, modules of each place and Type."""
    sops = json.loads((source / "sop_class_iod_map.json").read_text())
    iods = json.loads((source / "iod_module_map.json").read_text())
    tables = json.loads((source / "module_attribute_map.json").read_text())
    basics = {row.keyword: row.basic for row in load_table().values() if row.keyword}
    usages = collections.defaultdict(set)
    for iod in set(sops.values()):
        for module in iods[iod]:
            usages[module["key"]].add(module["usage"])
    names = sorted(usages.keys() & tables.keys())
    index = {name: number for number, name in enumerate(names)}
    places: dict[str, dict[str, set[int]]] = collections.defaultdict(lambda: collections.defaultdict(set))
    for name in names:
        for one in tables[name]:
            keyword, kind = one["keyword"], str(one["type"])[0]
            if kind not in "12" or not relevant(keyword, basics):
                continue
            optional = "M" not in usages[name]
            if optional and not one["path"] and stands_alone(tables[name], keyword):
                continue
            parent = one["path"][-1] if one["path"] else ""
            places[f"{parent}/{keyword}"][kind].add(index[name])
    return {
        "modules": names,
        "sop_classes": {
            uid: sorted({index[module["key"]] for module in iods[iod] if module["key"] in index})
            for uid, iod in sorted(sops.items())
        },
        "types": {
            place: {kind: sorted(found) for kind, found in sorted(kinds.items())}
            for place, kinds in sorted(places.items())
        },
    }


def main(arguments: list[str]) -> int:
    """Exit 0 when written, 2 when highdicom is not installed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edition", required=True)
    parser.add_argument("--taken", required=True, help="date, YYYY-MM-DD")
    options = parser.parse_args(arguments)
    spec = importlib.util.find_spec("highdicom")
    if spec is None or spec.origin is None:
        print("highdicom is not installed: pip install highdicom", file=sys.stderr)
        return 2
    source = Path(spec.origin).parent / "_standard"
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(source.glob("*.json")))).hexdigest()
    head = {
        "title": "Types 1 and 2 of attributes that de-identification acts on, by place and module",
        "edition": options.edition,
        "source": f"PS3.3 through highdicom's tables, sha256 {digest}",
        "taken": options.taken,
    }
    target = FOLDER / f"ps3_3_types_{options.edition}.json"
    body = build(source)
    lines = [f'"{key}": {json.dumps(value)}' for key, value in head.items()]
    lines.append('"modules": ' + json.dumps(body["modules"]))
    for section in ("sop_classes", "types"):
        rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in body[section].items())
        lines.append(f'"{section}": {{\n{rows}\n}}')
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="ascii")
    print(f"{target}: {len(body['types'])} places, {len(body['sop_classes'])} SOP classes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
