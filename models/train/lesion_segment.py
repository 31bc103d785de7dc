"""`lesion-segment-small-1`: marks tumours in T1, T1c, T2 and FLAIR of a head; a busy CPU core learns it in minutes.

People are split by hash, about 60 : 20 : 20: fitted; held out to stop early and to fix what a voxel and a mask must
reach (`lesion_segment_judged`); and judged, for the card's figures. Healthy people teach what is no lesion.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from monai.losses.dice import DiceCELoss
from torch import Tensor, nn

from models.cards import Card
from models.cohorts import Cohort
from models.lesion_anonymiser.domain import HISTOGRAMS, Domain, histogram, statistics
from models.lesion_anonymiser.study import NotAnonymised, SpacingZyx
from models.lesion_segmenter import ALGORITHM, LesionUNet, SegmenterConfig, SegmenterParts, parts_of
from models.lesion_segmenter.segment import unmarked
from models.train.lesion_material import Visit, common_sequences, split_visits, usable, visits_of
from models.train.lesion_segment_judged import figures, fixed
from models.train.lesion_segment_material import Slices, slices_of, varied
from models.train.stages import Stage, run_stage
from models.train.trained import Options, Tick, Trained, compact, lists_of, side_of

NAME = "lesion-segment-small-1"
FITTED = 0.6  # of the people; the others are held out, half of them to judge
HELD_ROWS = 256  # slices that judge the training
DOMAIN_STUDIES = 100  # that the domain is measured on


@dataclass(frozen=True, slots=True)
class SegmentPlan:
    """`voxel_mm` (z, y, x) of the card's grid, slices of `side` pixels, `widths` of the network's levels."""

    voxel_mm: SpacingZyx = (3.0, 3.0, 3.0)
    side: int = 80
    widths: tuple[float, ...] = (24, 32, 48, 64)
    steps: int = 1500
    batch: int = 16
    rate: float = 2e-3
    average: float = 0.98
    evaluate_every: int = 100
    patience: int = 6


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry."""
    plan = SegmentPlan()
    if options.steps is not None:
        plan = replace(plan, steps=options.steps)
    return train_segmenter(NAME, plan, cohorts, options, tick)


def train_segmenter(name: str, plan: SegmentPlan, cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """Raises ValueError for cohorts that cannot be trained on, for a checkpoint of another plan, and where the masks of
    people held out tell nothing.
    """
    visits = visits_of(cohorts)
    sequences = common_sequences(visits)
    fitted, held, judged = split(visits)
    torch.manual_seed(options.seed)  # the network's first weights are drawn from it
    network = LesionUNet(SegmenterConfig(len(sequences), plan.side, plan.widths))
    blank = SegmenterParts(network, sequences, plan.voxel_mm, 0.5, 0.5, 0.0)  # what is fixed comes after
    ours = slices_of(fitted, blank, tick)
    _fit(plan, network, ours, slices_of(held, blank, tick), options, tick)
    parts = fixed(blank, ours.smallest_ml, held, tick)
    domain = _domain(parts, fitted, tick)
    trained_on, people = lists_of(name, cohorts)
    tensors = compact(parts.tensors() | {HISTOGRAMS: domain.histograms})
    card = Card(
        name=name,
        role="segmenter",
        algorithm=ALGORITHM,
        modalities=("MR",),
        anatomy=("HEAD", "BRAIN"),
        dimensions=1,
        parameters=parts.parameters() | domain.parameters(),
        trained_on=trained_on,
        intended_use="Marks the lesion for the stage lesion_preserving in studies that bring no segmentation; what it "
        "is not certain of holds.",
        limits="Axial head MRI of the kind that its domain describes, with lesions such as its people have. A second "
        "lesion may be missed. Its mask is no finding: not for diagnosis.",
        licence="As the people it was trained on allow; it holds traces of them",
        source=f"trained here: deid-gateway train {name}, at most {plan.steps} steps, seed {options.seed}",
    )
    released = parts_of(card, tensors)  # judged as it is released: in float16
    whom = {"synthetic people" if one.synthetic else "real people" for one in cohorts}
    metrics = {"judged on": " and ".join(sorted(whom)), **figures(released, domain, judged, tick)}
    return Trained(card.model_copy(update={"metrics": metrics}), tensors, people)


def split(visits: Sequence[Visit]) -> tuple[list[Visit], list[Visit], list[Visit]]:
    """(fitted, held out, judged), nobody in two. Raises ValueError for too few people."""
    fitted, others = split_visits(visits, FITTED)
    held = [one for one in others if side_of("lesion-segment", one.person, 0.5)]
    judged = [one for one in others if not side_of("lesion-segment", one.person, 0.5)]
    if not held or not judged:
        raise ValueError("too few people to hold some out and to judge on others")
    return fitted, held, judged


def _fit(plan: SegmentPlan, network: nn.Module, ours: Slices, held: Slices, options: Options, tick: Tick) -> None:
    overlap = DiceCELoss(sigmoid=True, batch=True)
    rows = torch.arange(len(held))[:: max(1, -(-len(held) // HELD_ROWS))]

    def loss(net: nn.Module, chosen: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
        x, mask = varied(ours.seen(chosen), ours.mask[chosen].float(), generator)
        found: Tensor = overlap(net(x), mask)
        return found

    def held_loss(net: nn.Module) -> float:
        return float(overlap(net(held.seen(rows)), held.mask[rows].float()))

    stage = Stage(
        name="segment",
        steps=plan.steps,
        rows=torch.arange(len(ours)),
        loss=loss,
        held_loss=held_loss,
        batch=plan.batch,
        rate=plan.rate,
        average=max(min(plan.average, 1 - 20 / max(plan.steps, 1)), 0.0),
        evaluate_every=plan.evaluate_every,
        patience=plan.patience,
        seed=options.seed,
    )
    run_stage(network, stage, options.checkpoint, tick)


def _domain(parts: SegmenterParts, visits: Sequence[Visit], tick: Tick) -> Domain:
    """Of studies trained on, as if nobody had marked anything in them; a few, spread evenly over people."""
    chosen = visits[:: max(1, -(-len(visits) // DOMAIN_STUDIES))]
    seen = []
    for _, study in usable(chosen, parts.sequences, tick):
        try:
            seen.append(unmarked(study, parts))
        except NotAnonymised:
            continue
    if not seen:
        raise ValueError("no study is left to measure the domain on")
    means = [torch.stack([histogram(one.mapped[name], one) for one in seen]).mean(0) for name in parts.sequences]
    mean = torch.stack(means)
    return Domain.fitted([statistics(one, parts.sequences, mean) for one in seen], mean)
