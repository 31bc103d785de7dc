"""What released studies are worth, for bench.lesion: segmentation of the lesion and its grade, judged on real people.

Four trainings, each with as many updates: on all real people, on half of them, on that half beside the anonymised
other half, and on everybody anonymised. Judged on real people whom no training saw. Networks are small: a U-Net of
three levels, and a ResNet-18 an eighth as wide (paper: a ResNet-18). Slices are axial, all sequences as channels; the
grade is read from a window around the lesion, varied in pose and in each sequence's contrast while it is learned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from monai.losses.dice import DiceCELoss
from monai.networks.nets.resnet import ResNet
from monai.networks.nets.unet import UNet
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from bench.lesion_released import Released
from models.lesion_anonymiser import LesionStudy

KINDS = ("HGG", "LGG")
ARMS = ("real", "half_real", "mixed", "anonymised")
PAPER_MIOU = {"real": 0.7301, "half_real": 0.614, "mixed": 0.66, "anonymised": 0.4965}
PAPER_ACCURACY = {"real": 0.9925, "anonymised": 0.9575}
BATCH, RATE = 16, 2e-3
STEP = 4  # rows and columns are filled up to a multiple of this, for the U-Net
WINDOW = 32  # pixels a side, around the lesion's centre
SHOWN = 0.005  # of a slice's pixels: with less lesion it says nothing of the grade


@dataclass(frozen=True, slots=True)
class Slices:
    """`x` (n, sequences, rows, columns) 0 to 1, `lesion` (n, rows, columns) bool, `grade` and `person` (n,)."""

    x: Tensor
    lesion: Tensor
    grade: Tensor
    person: Tensor

    def __add__(self, other: Slices) -> Slices:
        names = ("x", "lesion", "grade", "person")
        return Slices(*(torch.cat([getattr(self, name), getattr(other, name)]) for name in names))

    def of(self, chosen: Tensor) -> Slices:
        return Slices(self.x[chosen], self.lesion[chosen], self.grade[chosen], self.person[chosen])


def slices_of(
    studies: Sequence[LesionStudy], brains: Sequence[NDArray[np.bool_]], made: Sequence[Released] | None = None
) -> Slices:
    """Axial slices with brain in them, of the originals, or of what was `made` of them (the same slices)."""
    parts: list[Slices] = []
    for number, (study, brain) in enumerate(zip(studies, brains, strict=True)):
        volumes = study.volumes if made is None else made[number].volumes
        lesion = study.lesion if made is None else made[number].lesion
        chosen = np.flatnonzero(brain.any((1, 2)))
        x = torch.from_numpy(np.stack([volumes[name][chosen] for name in study.volumes], 1))
        rows, columns = (-size % STEP for size in x.shape[2:])
        filled = functional.pad(x, (0, columns, 0, rows)).half()
        marked = functional.pad(torch.from_numpy(lesion[chosen]), (0, columns, 0, rows))
        count = len(chosen)
        grade = torch.full((count,), KINDS.index(str(study.kind)))
        parts.append(Slices(filled, marked, grade, torch.full((count,), number)))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole + part
    return whole


def arm_of(arm: str, learners: Sequence[Released]) -> Slices:
    """What one of ARMS is trained on. The half is every other person of each grade."""
    half = {one.subject for kind in KINDS for one in [two for two in learners if two.study.kind == kind][::2]}
    real = learners if arm == "real" else [one for one in learners if one.subject in half]
    made = learners if arm == "anonymised" else [one for one in learners if one.subject not in half]
    parts = []
    if arm != "anonymised":
        parts.append(slices_of([one.study for one in real], [one.brain for one in real]))
    if arm in ("mixed", "anonymised"):
        parts.append(slices_of([one.study for one in made], [one.brain for one in made], made))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def segmentation(learned: Slices, judged: Slices, updates: int, seeds: int, tick: Callable[[], None]) -> dict[str, Any]:
    """mIoU (background and lesion; of each person's volume, mean over people), mean and range over seeds."""
    found = []
    for seed in range(seeds):
        network = fitted(_unet, learned, updates, seed, _overlap, tick)
        marked = torch.cat([network(x.float()).argmax(1) > 0 for x in judged.x.split(64)])
        found.append(mean_iou(marked, judged.lesion, judged.person))
    return {"miou": _mean(found), "least": round(min(found), 4), "most": round(max(found), 4), **_size(learned)}


def classification(
    learned: Slices, judged: Slices, updates: int, seeds: int, tick: Callable[[], None]
) -> dict[str, Any]:
    """Accuracy of the grade on slices that show a lesion: by person (the mean of his slices decides) and by slice."""
    learned, judged = around_lesion(learned), around_lesion(judged)
    people, slices = [], []
    for seed in range(seeds):
        network = fitted(_resnet, learned, updates, seed, _grade, tick)
        said = torch.cat([network(x.float()).softmax(1)[:, 1] for x in judged.x.split(64)])
        slices.append(float(((said > 0.5) == (judged.grade > 0)).float().mean()))
        everybody = judged.person.unique()
        right = [
            (said[judged.person == one].mean() > 0.5) == (judged.grade[judged.person == one][0] > 0)
            for one in everybody
        ]
        people.append(float(torch.stack(right).float().mean()))
    return {
        "accuracy": _mean(people),
        "least": round(min(people), 4),
        "most": round(max(people), 4),
        "by slice": _mean(slices),
        "people judged": len(judged.person.unique()),
        **_size(learned),
    }


def around_lesion(slices: Slices) -> Slices:
    """Of slices that show enough of it, the window of WINDOW pixels a side; zeros where it leaves the slice."""
    shown = slices.of(slices.lesion.float().mean((1, 2)) > SHOWN)
    windows: list[tuple[Tensor, Tensor]] = []
    for x, lesion in zip(shown.x, shown.lesion, strict=True):
        row, column = (int(one) + WINDOW // 2 for one in torch.nonzero(lesion).float().mean(0))
        cut = (slice(row, row + WINDOW), slice(column, column + WINDOW))
        windows.append(tuple(functional.pad(one, (WINDOW,) * 4)[(..., *cut)] for one in (x, lesion)))  # type: ignore[arg-type]
    x, lesion = (torch.stack(one) for one in zip(*windows, strict=True))
    return Slices(x, lesion, shown.grade, shown.person)


def fitted(
    make: Callable[[int], nn.Module],
    learned: Slices,
    updates: int,
    seed: int,
    loss: Callable[[nn.Module, Slices], Tensor],
    tick: Callable[[], None],
) -> nn.Module:
    """The network after so many batches, with the rate falling to 0, in evaluation mode and without gradients."""
    torch.manual_seed(seed)
    network = make(learned.x.shape[1])
    adam = torch.optim.Adam(network.parameters(), RATE)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(adam, updates)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(updates):
        drawn = torch.randint(len(learned.x), (BATCH,), generator=generator)
        adam.zero_grad(set_to_none=True)
        loss(network, learned.of(drawn)).backward()  # type: ignore[no-untyped-call]
        adam.step()
        falling.step()
        tick()
    return network.eval().requires_grad_(False)


def mean_iou(marked: Tensor, true: Tensor, person: Tensor) -> float:
    """Intersection over union of lesion and of background in each person's slices, averaged: over both, then people.

    A class that is neither there nor marked counts as 1.
    """
    scores = []
    for one in person.unique():
        mine, theirs = marked[person == one], true[person == one]
        for a, b in ((mine, theirs), (~mine, ~theirs)):
            union = int((a | b).sum())
            scores.append(int((a & b).sum()) / union if union else 1.0)
    return float(np.mean(scores))


def _unet(channels: int) -> nn.Module:
    return UNet(2, channels, 2, channels=(8, 16, 32), strides=(2, 2), norm=("group", {"num_groups": 4}))


def _resnet(channels: int) -> nn.Module:
    return ResNet(
        "basic",
        [2, 2, 2, 2],
        [8, 16, 32, 64],
        2,
        channels,
        conv1_t_size=3,
        conv1_t_stride=1,
        no_max_pool=True,
        num_classes=len(KINDS),
        norm=("group", {"num_groups": 4}),
    )


def _overlap(network: nn.Module, batch: Slices) -> Tensor:
    given = network(batch.x.float())
    found: Tensor = DiceCELoss(to_onehot_y=True, softmax=True, batch=True)(given, batch.lesion[:, None].float())
    return found


def _grade(network: nn.Module, batch: Slices) -> Tensor:
    x = batch.x.float()
    turned, upside_down, mirrored = (torch.rand(3) < 0.5).tolist()
    x = x.transpose(2, 3) if turned else x
    x = x.flip(2) if upside_down else x
    x = x.flip(3) if mirrored else x
    gain, offset = torch.randn(2, *x.shape[:2], 1, 1)
    return functional.cross_entropy(network(x * torch.exp(0.25 * gain) + 0.08 * offset), batch.grade)


def _mean(found: Sequence[float]) -> float:
    return round(float(np.mean(found)), 4)


def _size(learned: Slices) -> dict[str, int]:
    return {"slices learned": len(learned.x)}
