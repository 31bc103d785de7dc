"""`resynthesis-chest-1`: the whole adjustable anonymiser of chest films; one network for every level r.

Stages: re-identification, semantics, codec, autoencoder, then codec and diffusion jointly, then prototypes of what the
codec says. What `train reid` or `train decoupling` finished on the same people in the same folder is not trained again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.cards import Card
from models.cohorts import Cohort
from models.resynthesis import ALGORITHM, AdjustableParts, parts_of
from models.resynthesis.domain import fitted
from models.train.decoupling import codec_stage, judged_partition, semantics_stage
from models.train.reid import LICENCE, Figures, figures, reid_stage
from models.train.reid_plan import AdjustablePlan, Line
from models.train.resynthesis_memory import memorisation
from models.train.resynthesis_stages import codebook_of, joint_stage, vae_stage
from models.train.stages import device
from models.train.trained import Options, Tick, Trained, compact, lists_of

NAME = "resynthesis-chest-1"


@dataclass(frozen=True, slots=True)
class Shows:
    """What pictures of a card show: `what` in words, and what of a header fits. `stated`: by the card's parameter, the
    terms that a header may state (`views`: View Position; `regions`: codes of Anatomic Region Sequence).
    """

    what: str
    modalities: tuple[str, ...]
    anatomy: tuple[str, ...]
    stated: Mapping[str, str] = field(default_factory=dict)


FILMS = Shows("frontal chest films", ("CR", "DX"), ("CHEST",), {"views": "AP,PA"})


def train(cohorts: Sequence[Cohort], options: Options, tick: Tick) -> Trained:
    """The entry: the shipped plan; `options.steps` is the number of steps of every stage."""
    return train_resynthesis(NAME, AdjustablePlan().with_steps(options.steps), cohorts, options, tick)


def train_resynthesis(
    name: str, plan: AdjustablePlan, cohorts: Sequence[Cohort], options: Options, tick: Tick, shows: Shows = FILMS
) -> Trained:
    """Raises ValueError for cohorts that cannot be trained on, a trivial partition, or a checkpoint of another plan."""
    line = Line.of(plan, cohorts, options, tick)
    return carded(name, line, trained_parts(line), cohorts, shows)


def trained_parts(line: Line) -> AdjustableParts:
    """All stages but the student's."""
    reid = reid_stage(line)
    foundation = semantics_stage(line)
    decoupler = codec_stage(line, foundation)
    picture = vae_stage(line)
    joint_stage(line, reid, foundation, decoupler, picture)
    codebook = codebook_of(line, foundation, decoupler)
    sampler = "flow" if line.plan.picture.prediction == "flow" else "ddim"
    plan = line.plan
    return AdjustableParts(
        reid, "own", foundation, decoupler, picture, sampler, plan.sampled, plan.channels, codebook=codebook
    )


def carded(name: str, line: Line, parts: AdjustableParts, cohorts: Sequence[Cohort], shows: Shows = FILMS) -> Trained:
    """Card, tensors and lists of people; judged as it is released, in float16."""
    trained_on, people = lists_of(name, cohorts)
    plan = line.plan
    steps = (plan.reid_steps, plan.semantics_steps, plan.codec_steps, plan.vae_steps, plan.joint_steps)
    card = Card(
        name=name,
        role="anonymiser",
        algorithm=ALGORITHM,
        modalities=shows.modalities,
        anatomy=shows.anatomy,
        dimensions=plan.picture.latent,
        parameters=parts.parameters(),
        trained_on=trained_on,
        intended_use=f"Makes {shows.what} anew from what is left when the identifying part is blocked, and from "
        "semantics without identity; a stage of the gateway, behind its gate. The level r is no privacy level.",
        limits="Which r gives which risk is measured by calibration, on people of the site. Below r 0.1 nothing of a "
        "picture is left, and it becomes one of 100 r kinds: findings that tell no kind are lost. Generated anatomy is "
        "nobody's: not for diagnosis, nor for measures, nor for change between visits.",
        licence=LICENCE,
        source=f"trained here: deid-gateway train {name}, at most {' + '.join(map(str, steps))} steps, "
        f"seed {line.seed}",
    )
    tensors = compact(parts.tensors())
    released = parts_of(card, tensors, device=device())
    found: Figures = {f"re-identification: {key}": value for key, value in figures(released.reid, line.held).items()}
    found |= judged_partition(line, released.foundation, released.decoupler)
    found |= memorisation(released, line.fitted, line.held, line.seed, line.tick)
    domain = fitted(released, line.fitted.x.float(), line.held.x.float())
    parameters = {**card.parameters, **shows.stated, **domain.parameters()}
    made = card.model_copy(update={"metrics": found, "parameters": parameters})
    return Trained(made, tensors | domain.tensors(), people)
