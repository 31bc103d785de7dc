"""DP-SGD whose unit is a patient: everything that one person gives to a step is clipped and hidden as one.

Abadi et al. 2016, algorithm 1, with a person in place of an example (McMahan et al. 2018). In each step everybody is
drawn with chance q, alone; a person's gradient over some of the own slices is clipped to norm C; the sum gets Gaussian
noise of spread σC in each coordinate and is divided by the expected number of people. The guarantee is for adding or
removing one person with all scans. It is opacus's accountant that turns (q, σ, steps) into ε.

ε is that of all planned steps, because when a stage stops early hangs on what was learnt. Draws come from a secret key,
never from the run's seed: who could draw the noise again could take it off. Rounding of floats is not accounted for
(Mironov 2012).
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from models.cards import PatientPrivacy
from models.train.trained import Privacy

ACCOUNTANT = "rdp"  # Rényi: an upper bound in closed form; opacus's PRV is tighter, and an approximation
ROWS_A_PERSON = 4  # of one person's slices in one step
ROUNDING = 1e-9  # by which clipping stays below C, so that rounding never lifts it above
COVERS = "the weights"
LEAVES_OUT = (
    "people held out, who stop the training early and on whom latents' spread and the domain are measured; the lists "
    "of people; figures of memorisation; which sequences and classes there are and how many people. Another card of "
    "the same people spends an epsilon of its own, and they add up."
)

PersonLoss = Callable[[Tensor, torch.Generator, int], Tensor]  # rows of one person, generator, epoch


def opacus() -> Any:
    """Its accountants. Raises ValueError where it is not installed."""
    try:
        return import_module("opacus.accountants")
    except ImportError:
        raise ValueError("differential privacy needs opacus: pip install 'deid-gateway[dp]'") from None


class SecretDraws:
    """Random numbers of a key: SHAKE-256 over key and counter, so that what is seen of them tells nothing of others."""

    def __init__(self, key: bytes) -> None:
        self.key, self.count = key, 0

    def uniform(self, count: int) -> NDArray[np.float64]:
        """(count,), 0 to 1, 1 excluded, in steps of 2^-53."""
        self.count += 1
        body = hashlib.shake_256(self.key + self.count.to_bytes(16, "big")).digest(8 * count)
        return (np.frombuffer(body, ">u8") >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def normal(self, shape: torch.Size) -> Tensor:
        """Standard normal, float64 (Box and Muller 1958)."""
        pairs = -(-shape.numel() // 2)
        radius = np.sqrt(-2 * np.log1p(-self.uniform(pairs)))
        angle = 2 * np.pi * self.uniform(pairs)
        both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])
        return torch.from_numpy(both[: shape.numel()]).reshape(shape)

    def some(self, rows: Tensor, count: int) -> Tensor:
        """At most `count` of them, without putting back."""
        return rows[torch.from_numpy(np.argsort(self.uniform(len(rows)), kind="stable")[:count])]

    def seed(self) -> int:
        """For draws inside a loss, which need no secret: independent of all others."""
        return int(self.uniform(1)[0] * 2**53)


class PatientMechanism:
    """What all stages of a run share: σ, q, C, draws, and the accountant. `people` by number, each once."""

    def __init__(self, asked: Privacy, people: Tensor, expected: int, steps: int) -> None:
        """`expected` people in a step, `steps` of all stages together. Raises ValueError for what cannot be kept."""
        if len(people) * asked.delta >= 1:
            raise ValueError(f"delta must be below 1 / {len(people)}, one over the number of people trained on")
        self.asked, self.people, self.steps = asked, people, steps
        self.rate = min(1.0, expected / len(people))
        self.accountant = opacus().RDPAccountant()
        self.sigma = noise_multiplier(asked.epsilon, asked.delta, self.rate, steps)
        self.draws = SecretDraws(asked.key if asked.key is not None else secrets.token_bytes(32))

    @property
    def taken(self) -> int:
        return sum(steps for _, _, steps in self.accountant.history)

    def spend(self) -> None:
        """Accounts for a step before it is used. Raises ValueError when all planned ones are taken."""
        if self.taken >= self.steps:
            raise ValueError(f"all {self.steps} steps that the privacy was planned for are taken")
        self.accountant.step(noise_multiplier=self.sigma, sample_rate=self.rate)

    def noised(self, summed: Tensor) -> Tensor:
        """The mean that a step may use, out of a sum of clipped contributions."""
        noise = self.draws.normal(summed.shape).to(summed.device)
        return (summed + self.sigma * self.asked.clip * noise) / (self.rate * len(self.people))

    def some_of_each(self, rows: Tensor, who: Tensor, count: int) -> Tensor:
        """About `count` rows, the same number of everybody: whether one is taken hangs on no other person's."""
        each = -(-count // len(self.people))
        return torch.cat([self.draws.some(rows[who == person], each) for person in self.people])

    def fingerprint(self) -> str:
        """Of what must be the same for a run to go on; not of the key, which the checkpoint holds."""
        said = (self.asked.epsilon, self.asked.delta, self.asked.clip, self.sigma, self.rate, self.steps)
        return repr((*said, len(self.people), ROWS_A_PERSON))

    def state(self) -> dict[str, Any]:
        """For a checkpoint, which is thereby as secret as the scans."""
        account = dict(self.accountant.state_dict())
        return {"accountant": account, "key": self.draws.key.hex(), "count": self.draws.count}

    def restore(self, state: dict[str, Any]) -> None:
        """Raises ValueError for a checkpoint of another run: steps that nobody accounts for would be in the weights."""
        if self.taken and state["key"] != self.draws.key.hex():
            raise ValueError("the folder holds stages of two private runs: take another folder, and begin anew")
        self.accountant.load_state_dict(state["accountant"])
        self.draws = SecretDraws(bytes.fromhex(state["key"]))
        self.draws.count = int(state["count"])

    def carded(self, unprotected: int) -> PatientPrivacy:
        """For the card."""
        return PatientPrivacy(
            unit="patient",
            epsilon=epsilon_of(self.asked.delta, self.rate, self.sigma, self.steps),
            delta=self.asked.delta,
            noise_multiplier=self.sigma,
            clip=self.asked.clip,
            sampling_rate=self.rate,
            steps=self.steps,
            steps_taken=self.taken,
            accountant=f"opacus {import_module('opacus').__version__}, {self.accountant.mechanism()}",
            people=len(self.people),
            people_unprotected=unprotected,
            covers=COVERS,
            leaves_out=LEAVES_OUT,
        )


@dataclass(frozen=True, slots=True)
class PatientSteps:
    """One stage under the mechanism. `who` (n,): the person of each of the stage's `rows` (n,)."""

    mechanism: PatientMechanism
    rows: Tensor
    who: Tensor

    def gradients(self, network: nn.Module, step: int, loss: PersonLoss) -> None:
        """Sets every weight's gradient. Raises ValueError when a person left traces elsewhere (as BatchNorm keeps)."""
        weights = [one for one in network.parameters() if one.requires_grad]
        buffers = [one.clone() for one in network.buffers()]
        total = [torch.zeros_like(one, dtype=torch.float64) for one in weights]
        epoch = int(step * self.mechanism.rate)
        for rows in self._drawn():
            network.zero_grad(set_to_none=True)
            loss(rows, torch.Generator().manual_seed(self.mechanism.draws.seed()), epoch).backward()  # type: ignore[no-untyped-call]
            given = [torch.zeros_like(one) if one.grad is None else one.grad for one in weights]
            for summed, one in zip(total, clipped(given, self.mechanism.asked.clip), strict=True):
                summed.add_(one)
        if not all(torch.equal(old, new) for old, new in zip(buffers, network.buffers(), strict=True)):
            raise ValueError("the network keeps statistics of people outside its gradients: use norm group, not batch")
        self.mechanism.spend()
        for one, summed in zip(weights, total, strict=True):
            one.grad = self.mechanism.noised(summed).to(one)

    def _drawn(self) -> Iterator[Tensor]:
        """Some rows of everybody who was drawn."""
        draws, people = self.mechanism.draws, self.mechanism.people
        for person in people[torch.from_numpy(draws.uniform(len(people)) < self.mechanism.rate)]:
            own = self.rows[self.who == person]
            if len(own):  # somebody without rows in this stage gives nothing
                yield draws.some(own, ROWS_A_PERSON)


def clipped(gradients: Sequence[Tensor], clip: float) -> list[Tensor]:
    """One person's, in float64, of norm `clip` at most over all of them; nothing when it is no finite number."""
    wide = [one.double() for one in gradients]
    norm = float(torch.stack([torch.linalg.vector_norm(one) for one in wide]).norm())
    if not np.isfinite(norm):
        return [torch.zeros_like(one) for one in wide]
    return [one * (clip / max(norm * (1 + ROUNDING), clip)) for one in wide]


def noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """σ that keeps ε after all steps. Raises ValueError when none does."""
    opacus()  # says what to install
    search = import_module("opacus.accountants.utils").get_noise_multiplier
    try:
        found = search(
            target_epsilon=epsilon,
            target_delta=delta,
            sample_rate=rate,
            steps=steps,
            accountant=ACCOUNTANT,
            epsilon_tolerance=epsilon / 200,
        )
    except ValueError:
        raise ValueError(f"no noise keeps epsilon {epsilon} over {steps} steps: allow more, or take fewer") from None
    return float(found)


def epsilon_of(delta: float, rate: float, sigma: float, steps: int) -> float:
    """ε of that many equal steps."""
    accountant = opacus().RDPAccountant()
    accountant.history = [(sigma, rate, steps)]
    return float(accountant.get_epsilon(delta))
