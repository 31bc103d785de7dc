"""The plan of the adjustable anonymiser's training, and what its stages share.

`reid`, `decoupling`, `resynthesis` and `onestep` are one line of stages. Their checkpoints carry the digest of the
people and plan, not the entry's name: in one folder, an entry goes on from what an earlier one finished on the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from models.cohorts import Cohort
from models.mdl_decoupling import SMALL as SMALL_CODEC
from models.mdl_decoupling import DecouplingConfig
from models.reid_encoder import SMALL as SMALL_REID
from models.reid_encoder import ReidConfig
from models.resynthesis import SMALL as SMALL_PICTURE
from models.resynthesis import ResynthesisConfig
from models.train.augmentations import Strength
from models.train.reid_material import Material, apart, gathered, known_findings
from models.train.stages import HeldLoss, Loss, Stage, device, run_stage
from models.train.trained import Options, Tick

FITTED = 0.85  # of the people; the others stop the training early
HELD_SEED = 30_001
# Strong in exposure, noise and blur: another machine must not be another person.
TAKES = Strength(rotate=8.0, scale=0.1, shift=0.06, warp=0.01, gamma=0.6, contrast=0.4, noise=0.2, blur=0.5)


@dataclass(frozen=True, slots=True)
class AdjustablePlan:
    """Steps of every stage. `people` in a batch, two pictures of each; `batch` pictures where people do not matter.

    `levels` that r is drawn from, so that one model serves all; `sampled` steps of the card, `pairs` of noise and
    picture that the teacher makes with `teacher_steps` for the student of one step. `density`: limits of the mask.
    `confuse`: weight of the opponent that reads identity from Q_sem; `price` of the bits that the mask takes; `useful`
    of the findings that Q_sem keeps. 0, 1 and 0 are the paper's literal objective, whose mask takes next to nothing.
    `takes`: how other takes of a picture differ for the re-identification network; `reid_rate` is its own, a
    transformer that is taught who is who stands still at that of the others.
    `channels` of pictures: 1 is grey, 3 is colour, for networks of 3 channels.
    `stable_diffusion`: folder of weights that U-Net and autoencoder begin with (with vae_steps 0 the latter stays).
    """

    reid: ReidConfig = field(default=SMALL_REID)
    codec: DecouplingConfig = field(default=SMALL_CODEC)
    picture: ResynthesisConfig = field(default=SMALL_PICTURE)
    reid_steps: int = 2000
    semantics_steps: int = 1500
    codec_steps: int = 1500
    vae_steps: int = 4000
    joint_steps: int = 8000
    student_steps: int = 3000
    people: int = 24
    batch: int = 32
    rate: float = 1e-3
    reid_rate: float = 1e-3
    takes: Strength = TAKES
    average: float = 0.998
    evaluate_every: int = 200
    patience: int = 8
    levels: tuple[float, float] = (0.1, 0.97)
    sampled: int = 4
    pairs: int = 2048
    teacher_steps: int = 16
    confuse: float = 60.0
    price: float = 0.2
    useful: float = 100.0
    density: tuple[float, float] = (0.05, 0.95)
    channels: int = 1
    stable_diffusion: Path | None = None

    def with_steps(self, steps: int | None) -> AdjustablePlan:
        """All stages of as many steps; None leaves the plan as it is. Raises ValueError for fewer than one."""
        if steps is None:
            return self
        if steps < 1:
            raise ValueError("every stage takes one step or more")
        return replace(
            self,
            reid_steps=steps,
            semantics_steps=steps,
            codec_steps=steps,
            vae_steps=steps,
            joint_steps=steps,
            student_steps=steps,
        )


@dataclass(frozen=True, slots=True)
class Line:
    """One run: plan, people that are fitted and held out, where it computes."""

    plan: AdjustablePlan
    fitted: Material
    held: Material
    options: Options
    tick: Tick

    @classmethod
    def of(cls, plan: AdjustablePlan, cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Line:
        """Raises ValueError for cohorts that cannot be trained on."""
        names = known_findings(cohorts)
        side, channels = plan.picture.side, plan.channels
        fitted, held = (gathered(some, names, side, tick, channels) for some in apart(cohorts, FITTED))
        if len(torch.unique(fitted.who)) == len(fitted):
            raise ValueError("nobody has two scans, and who is who is learnt from those")
        return cls(plan, fitted, held, options, tick)

    @property
    def where(self) -> torch.device:
        return device()

    @property
    def digest(self) -> str:
        """Of the plan and of everybody, also of those held out: they decide when a stage stops."""
        told = repr(self.plan) + self.fitted.digest() + self.held.digest()
        return hashlib.sha256(told.encode()).hexdigest()[:12]

    @property
    def seed(self) -> int:
        return self.options.seed

    def run(
        self,
        name: str,
        network: nn.Module,
        steps: int,
        rows: Tensor,
        batch: int,
        loss: Loss,
        held: HeldLoss,
        rate: float | None = None,
    ) -> None:
        """One stage, in place; its checkpoint lies beside the entry's, under the digest of people and plan."""
        plan = self.plan
        stage = Stage(
            name=name,
            steps=steps,
            rows=rows,
            loss=loss,
            held_loss=held,
            batch=batch,
            rate=plan.rate if rate is None else rate,
            average=max(min(plan.average, 1 - 20 / max(steps, 1)), 0.0),
            evaluate_every=plan.evaluate_every,
            patience=plan.patience,
            seed=self.seed,
        )
        kept = self.options.checkpoint
        if kept is not None:
            kept = kept.with_name(f"adjustable.{self.digest}.checkpoint")
        run_stage(network, stage, kept, self.tick)

    def fresh(self, salt: int) -> None:
        """First weights of the next network are drawn from this: the same whichever stages ran before."""
        torch.manual_seed(1000 * self.seed + salt)


def some(rows: Tensor, most: int) -> Tensor:
    """At most so many, spread evenly."""
    return rows[:: max(1, -(-len(rows) // most))]
