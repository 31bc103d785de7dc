"""What the codec is trained on: short codes that keep the features, and short identity codes that name the person.

L_code-all = bits(Q) / N + λ ‖f − D(Q)‖²            N places of all maps; the square is a mean over elements
L_code-id  = ρ bits(M ⊗ Q) / N + λ_id L_ReID(h(M ⊗ Q))
A masked code is charged nothing: multiplied by 0 alone it would still cost −log2 p(0). The paper gives no λ.

These two ask that M ⊗ Q names the person, not that Q_sem does not: measured, Q_sem links as well as Q does. Beyond the
paper, `confuse` adds λ_leak L_ReID(h'(Q_sem)), h' with a reversed gradient: an opponent learns to name the person from
Q_sem, and codec and mask learn to leave it nothing. 0 is literal. What the opponent points at is masked only where its
bits are not too dear: at the literal ρ = `price` = 1 the mask keeps to one channel of 32, whatever else is in the code.

An opponent that is strong leaves nothing in Q_sem at all: measured, findings went with identity. `useful` adds
λ_use BCE(g(D(Q_sem)), σ(g(f))), g the head by which the frozen network itself reads findings, where it has one.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from models.mdl_decoupling.network import Coded, Decoupler
from models.reid_encoder.objectives import identity_loss

KEEP, NAME = 100.0, 20.0  # λ and λ_id


def bits_per_place(bits: Tensor) -> Tensor:
    """(b, c, h, w) -> mean over places of the sum over channels."""
    return bits.sum(1).mean()


def decoupling_losses(
    model: Decoupler,
    features: Tensor,
    who_b: Tensor,
    temperature: float,
    generator: torch.Generator,
    *,
    keep: float = KEEP,
    name: float = NAME,
    confuse: float = 0.0,
    price: float = 1.0,
    useful: float = 0.0,
    reads: Callable[[Tensor], Tensor | None] = lambda _features: None,
) -> tuple[dict[str, Tensor], Coded]:
    """Terms `rate`, `distortion`, `identity rate`, `identity`, `leak` and `meaning` where they are asked for, and both
    losses, `code-all` and `code-id`; the codes. `reads`: features -> logits of findings, or None.

    Raises ValueError when nobody of `who_b` has two pictures.
    """
    coded = model.noisy_code(features, temperature, generator)
    terms = {
        "rate": bits_per_place(coded.bits),
        "distortion": functional.mse_loss(model.decode(coded.q), model.standardised(features)),
        "identity rate": bits_per_place(coded.mask * coded.bits),
        "identity": identity_loss(model.identity_of(coded.q_id), who_b),
    }
    if confuse:
        terms["leak"] = identity_loss(model.leak_of(coded.q_sem), who_b)
    terms["code-all"] = terms["rate"] + keep * terms["distortion"]
    terms["code-id"] = price * terms["identity rate"] + name * terms["identity"]
    if confuse:
        terms["code-id"] = terms["code-id"] + confuse * terms["leak"]
    told = reads(features) if useful else None
    again = reads(model.features_of(model.decode(coded.q_sem))) if useful else None
    if told is not None and again is not None:
        terms["meaning"] = functional.binary_cross_entropy_with_logits(again, told.detach().sigmoid())
        terms["code-id"] = terms["code-id"] + useful * terms["meaning"]
    return terms, coded
