"""Every method of bench.adjustable, trained for one step: films in, films out, and what is read off them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import torch

from bench.adjustable_films import Films, Setting, outline_of
from bench.adjustable_methods import FEW, LEVELS, methods, networks_of, parted
from bench.adjustable_readers import HOGS, Readers, linear_of
from bench.adjustable_reports import slots_of
from bench.adjustable_summary import OTHERS, OURS
from models.cohorts import synthetic_chest
from models.train.reid_material import gathered, known_findings


def quiet(_what: str, _done: int, _total: int) -> None:
    return


def test_every_method_gives_films_at_its_levels_and_they_are_read(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    cohort = synthetic_chest(20, 2, 41, finding_share=0.9)
    material = gathered([cohort], known_findings([cohort]), 64, quiet)
    outlines = [outline_of(scan, 64) for scan in cohort]
    slots = tuple(slots_of(scan, outline) for scan, outline in zip(cohort, outlines, strict=True))
    films = Films(material, torch.stack([torch.from_numpy(one) for one in outlines])[:, None], slots)
    fitted, held = parted(material)
    assert not set(fitted.who.tolist()) & set(held.who.tolist())
    setting = Setting("drawn, all trained here", films, films, films, cohort)
    one = networks_of(setting, "", 1, tmp_path, quiet, generate=True)
    wanted = list(methods(one))
    names = {method.name for method in wanted}
    assert {OURS, "original", "mask alone", *OTHERS} <= names
    count = Counter(method.name for method in wanted)
    assert count[OURS] == count["ours, no decoupling"] == len(LEVELS) + len(FEW)
    assert count["ours, no semantics"] == count["mask alone"] == len(LEVELS)
    assert len({count[name] for name in OTHERS}) == 1  # rivals have as many levels as each other
    own = [method.level for method in wanted if method.name == OURS]
    assert own == sorted(own)  # the most private first
    x = films.x[:1]
    first = wanted[: len(names)]
    assert {method.name for method in first} == names
    for method in first:
        made = method.release(x)
        assert made.shape == x.shape, method.name
        assert 0 <= made.min() <= made.max() <= 1, method.name
        assert torch.equal(made, method.release(x)), method.name  # whenever it is done
    read = Readers.of(films, 1, tmp_path, quiet).read(films.x, linear_of(films.x)[:, -HOGS:], films)
    assert set(read) == {"auroc", "dice", "bleu"}
    assert read["auroc"].value > 0.8  # of what it was fitted on
    assert all(0 <= one.value <= 1 for one in read.values())
