"""`lesion-brain-1`: the lesion-preserving anonymiser of brain MRI. Autoencoders, diffusion, a student of few steps.

People are split by hash, 85 : 15: the rest stops the training early and is the reference of the memorisation tests.
Sequences are those that all of the cohorts' studies have, classes those that occur. One process, one device: several
GPUs are not used. Under differential privacy (`models.train.privacy`) all that is not a gradient, as the spread of
latents and the domain, is measured on people held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from torch import Tensor, nn

from models.cards import Card
from models.cohorts import Cohort
from models.lesion_anonymiser.domain import HISTOGRAMS, Domain, histogram, measured
from models.lesion_anonymiser.parts import ALGORITHM, LesionParts, parts_of
from models.lesion_anonymiser.preparation import prepared
from models.lesion_anonymiser.study import NotAnonymised, SpacingZyx
from models.lesion_diffusion import SMALL as SMALL_UNET
from models.lesion_diffusion import LatentUNet, UNetConfig
from models.lesion_vae import SMALL as SMALL_VAE
from models.lesion_vae import LesionVae, VaeConfig
from models.train.lesion_losses import (
    diffusion_held_loss,
    diffusion_stage_loss,
    encoded,
    measure_latents,
    student_held_loss,
    student_loss,
    teacher_pairs,
    vae_held_loss,
    vae_stage_loss,
)
from models.train.lesion_material import Material, Visit, common_sequences, gathered, split_visits, usable, visits_of
from models.train.lesion_memory import memorisation
from models.train.privacy import PatientMechanism, PatientSteps, opacus
from models.train.stages import HeldLoss, Loss, Stage, device, run_stage
from models.train.trained import Options, Tick, Trained, compact, lists_of

NAME = "lesion-brain-1"
FITTED = 0.85  # of the people
HELD_ROWS = 256  # slices that judge a stage
DOMAIN_STUDIES = 100  # that the domain is measured on


@dataclass(frozen=True, slots=True)
class LesionPlan:
    """Steps of the three stages; 0 for `student_steps` leaves it out. Sequences and classes are the cohorts'.

    `voxel_mm` (z, y, x) of the card's grid. `pairs`: slices that the teacher samples with `teacher_steps` for the
    student. `sampled`: steps that the card is judged and used with. `average` of weights; less in short runs.
    """

    vae: VaeConfig = field(default=replace(SMALL_VAE, side=96))
    unet: UNetConfig = field(default=SMALL_UNET)
    voxel_mm: SpacingZyx = (3.0, 2.4, 2.4)
    vae_steps: int = 8000
    diffusion_steps: int = 12000
    student_steps: int = 4000
    pairs: int = 4096
    teacher_steps: int = 20
    sampled: int = 4
    teacher_sampled: int = 20
    batch: int = 16
    rate: float = 1e-4
    average: float = 0.999
    evaluate_every: int = 250
    patience: int = 8
    bfloat16: bool = False  # on a CPU too; not under differential privacy


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry: the shipped plan; `options.steps` is the number of steps of every stage."""
    plan = LesionPlan()
    if options.steps is not None:
        steps = options.steps
        plan = replace(plan, vae_steps=steps, diffusion_steps=steps, student_steps=steps)
    return train_lesion(NAME, plan, cohorts, options, tick)


def train_lesion(name: str, plan: LesionPlan, cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """Raises ValueError for cohorts that cannot be trained on, or a checkpoint of another plan."""
    if options.privacy is not None:
        opacus()  # is it there? Rather than after an hour of reading
    visits = visits_of(cohorts)
    sequences = common_sequences(visits)
    kinds = tuple(sorted({visit.kind for visit in visits}))
    plan = replace(
        plan,
        vae=replace(plan.vae, sequences=len(sequences)),
        unet=replace(plan.unet, latent=plan.vae.latent, classes=len(kinds)),
    )
    ours, others = split_visits(visits, FITTED)
    fitted, held = (gathered(some, sequences, kinds, plan.vae.side, plan.voxel_mm, tick) for some in (ours, others))
    mechanism = _mechanism(plan, fitted, options)
    parts = _trained(plan, fitted, held, sequences, kinds, options, mechanism, tick)
    domain = _domain(parts, ours if mechanism is None else others, tick)
    trained_on, people = lists_of(name, cohorts)
    tensors = compact(parts.tensors() | {HISTOGRAMS: domain.histograms})
    card = Card(
        name=name,
        role="anonymiser",
        algorithm=ALGORITHM,
        modalities=("MR",),
        anatomy=("HEAD", "BRAIN"),
        dimensions=plan.vae.latent,
        parameters=parts.parameters() | domain.parameters(),
        trained_on=trained_on,
        privacy=mechanism.carded(len(torch.unique(held.who))) if mechanism is not None else None,
        intended_use="Replaces everything around a lesion in axial head MRI by generated anatomy; a stage of the "
        "gateway, behind its gate.",
        limits="Axial volumes of the kind that its domain describes. Generated anatomy is nobody's: not for diagnosis, "
        "nor for measures outside the lesion. The lesion stays and may identify a person by itself.",
        licence="As the people it was trained on allow; it holds traces of them",
        source=f"trained here: deid-gateway train {name}, at most {plan.vae_steps} + {plan.diffusion_steps} + "
        f"{plan.student_steps} steps, seed {options.seed}",
    )
    released = parts_of(
        card, tensors, device()
    )  # judged as it is released: in float16, and the student if there is one
    return Trained(
        card.model_copy(update={"metrics": memorisation(released, fitted, held, options.seed, tick)}), tensors, people
    )


def _mechanism(plan: LesionPlan, fitted: Material, options: Options) -> PatientMechanism | None:
    """Over all stages; as many people in a step, on average, as there would be slices."""
    if options.privacy is None:
        return None
    steps = plan.vae_steps + plan.diffusion_steps + plan.student_steps
    return PatientMechanism(options.privacy, torch.unique(fitted.who), plan.batch, steps)


def _trained(
    plan: LesionPlan,
    fitted: Material,
    held: Material,
    sequences: tuple[str, ...],
    kinds: tuple[str, ...],
    options: Options,
    mechanism: PatientMechanism | None,
    tick: Tick,
) -> LesionParts:
    """The three stages one after the other."""
    torch.manual_seed(options.seed)  # the networks' first weights are drawn from it
    where = device()
    vae = LesionVae(plan.vae).to(where)
    unet = LatentUNet(plan.unet).to(where)
    run = partial(_run, plan, options, mechanism, tick)
    judged = _some(torch.arange(len(held)))
    everything = torch.arange(len(fitted))
    judge = vae_held_loss(held, judged, plan.vae_steps * plan.batch // len(fitted))
    run("vae", vae, plan.vae_steps, everything, fitted.who, vae_stage_loss(fitted), judge)
    latents, latents_held = encoded(vae, fitted), encoded(vae, held)
    measure_latents(vae, (latents if mechanism is None else latents_held).to(where))
    z, z_held = (vae.scaled(one.to(where)).cpu() for one in (latents, latents_held))
    rows, rows_held = (torch.nonzero(one.below >= 0).flatten() for one in (fitted, held))
    if not len(rows) or not len(rows_held):
        raise ValueError("studies of one slice cannot teach how slices fit together")
    judge = diffusion_held_loss(held, z_held, _some(rows_held))
    run("diffusion", unet, plan.diffusion_steps, rows, fitted.who[rows], diffusion_stage_loss(fitted, z), judge)
    teacher = "flow" if plan.unet.prediction == "flow" else "ddim"
    parts = LesionParts(vae, unet, None, sequences, kinds, plan.voxel_mm, teacher, plan.teacher_sampled)
    if not plan.student_steps:
        return parts
    student = LatentUNet(replace(plan.unet, prediction="flow")).to(where)
    student.load_state_dict(unet.state_dict())  # what it knows of anatomy; what it says of it is learnt anew
    generator = torch.Generator().manual_seed(options.seed)
    if mechanism is None:
        sources = rows[torch.randperm(len(rows), generator=generator)[: plan.pairs]]
        pairs = teacher_pairs(unet, fitted, z, sources, plan.teacher_steps, options.seed)
    else:  # a public seed would give everybody other noise when one person is left out
        sources = mechanism.some_of_each(rows, fitted.who[rows], plan.pairs)
        pairs = teacher_pairs(unet, fitted, z, sources, plan.teacher_steps, mechanism.draws.seed())
    sources_held = _some(rows_held)
    pairs_held = teacher_pairs(unet, held, z_held, sources_held, plan.teacher_steps, options.seed + 1)
    loss, judge = student_loss(fitted, z, sources, pairs), student_held_loss(held, z_held, sources_held, pairs_held)
    run("student", student, plan.student_steps, torch.arange(len(sources)), fitted.who[sources], loss, judge)
    return replace(parts, student=student, sampler="flow", steps=plan.sampled)


def _run(
    plan: LesionPlan,
    options: Options,
    mechanism: PatientMechanism | None,
    tick: Tick,
    name: str,
    network: nn.Module,
    steps: int,
    rows: Tensor,
    who: Tensor,
    loss: Loss,
    held_loss: HeldLoss,
) -> None:
    stage = Stage(
        name=name,
        steps=steps,
        rows=rows,
        loss=loss,
        held_loss=held_loss,
        batch=plan.batch,
        rate=plan.rate,
        average=max(min(plan.average, 1 - 20 / max(steps, 1)), 0.0),
        evaluate_every=plan.evaluate_every,
        patience=plan.patience,
        seed=options.seed,
        private=PatientSteps(mechanism, rows, who) if mechanism is not None else None,
        bfloat16=plan.bfloat16 and mechanism is None,
    )
    run_stage(network, stage, options.checkpoint, tick)


def _some(rows: Tensor) -> Tensor:
    """At most HELD_ROWS, spread evenly."""
    return rows[:: max(1, -(-len(rows) // HELD_ROWS))]


def _domain(parts: LesionParts, visits: Sequence[Visit], tick: Tick) -> Domain:
    """Of studies trained on, a few of them, spread evenly over people."""
    chosen = visits[:: max(1, -(-len(visits) // DOMAIN_STUDIES))]
    studies = []
    for _, study in usable(chosen, parts.sequences, tick):
        try:
            studies.append(prepared(study, parts.vae.config.side, parts.voxel_mm))
        except NotAnonymised:
            continue
    if not studies:
        raise ValueError("no study is left to measure the domain on")
    mean = torch.stack(
        [torch.stack([histogram(one.mapped[name], one) for one in studies]).mean(0) for name in parts.sequences]
    )
    return Domain.fitted([measured(one, parts, mean) for one in studies], mean)
