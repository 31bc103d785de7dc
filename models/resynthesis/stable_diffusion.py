"""Weights of Stable Diffusion from a folder on disk into the paper's configuration. Safetensors only: no pickle.

FOLDER/unet/diffusion_pytorch_model.safetensors
FOLDER/vae/diffusion_pytorch_model.safetensors
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from models.resynthesis.networks import Resynthesis

FILES = ("diffusion_pytorch_model.safetensors", "diffusion_pytorch_model.fp16.safetensors")
ENTRY = "conv_in.weight"
# The autoencoder's attention, as the files of 2022 call it.
OLD_NAMES = {".query.": ".to_q.", ".key.": ".to_k.", ".value.": ".to_v.", ".proj_attn.": ".to_out.0."}


def load_stable_diffusion(model: Resynthesis, folder: Path) -> None:
    """Fills U-Net and autoencoder. The planes of X_noID begin with weight 0: what was published is what it starts from.

    Raises ValueError when a file is absent, or its tensors are not exactly those of the configuration; the model is
    then as it was.
    """
    vae = _renamed(_read(folder / "vae"))
    unet = _read(folder / "unet")
    latent = model.config.latent
    entry = unet.get(ENTRY)
    if entry is None or entry.ndim != 4 or entry.shape[1] != latent:
        raise ValueError(f"{folder / 'unet'} is no U-Net of {latent} latent channels")
    more = model.config.planes - latent
    widened = torch.cat([entry, torch.zeros(len(entry), more, *entry.shape[2:], dtype=entry.dtype)], 1)
    unet = {**unet, ENTRY: widened}
    parts: tuple[tuple[str, nn.Module, Mapping[str, Tensor]], ...] = (
        ("unet", model.unet, unet),
        ("vae", model.vae, vae),
    )
    for name, part, tensors in parts:
        _must_fit(part, tensors, folder / name)
    for _, part, tensors in parts:
        part.load_state_dict({key: one.float() for key, one in tensors.items()}, strict=True)


def _read(folder: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = next((folder / name for name in FILES if (folder / name).is_file()), None)
    if path is None:
        raise ValueError(f"{folder} holds no {FILES[0]}; a pickle (.bin, .ckpt) is not read")
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise ValueError(f"{path} cannot be read as safetensors ({type(error).__name__})") from None


def _renamed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Attention under its names of today, as matrices (files from before 2023 also have 1 x 1 convolutions)."""
    made = {}
    for name, one in tensors.items():
        if ".attentions." in name:
            for old, new in OLD_NAMES.items():
                name = name.replace(old, new)  # noqa: PLW2901
            if one.ndim == 4:
                one = one[:, :, 0, 0]  # noqa: PLW2901
        made[name] = one
    return made


def _must_fit(part: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    expected = {name: tuple(one.shape) for name, one in part.state_dict().items()}
    found = {name: tuple(one.shape) for name, one in tensors.items()}
    missing, more = sorted(expected.keys() - found.keys()), sorted(found.keys() - expected.keys())
    other = sorted(name for name in expected.keys() & found.keys() if expected[name] != found[name])
    if missing or more or other:
        shown = "; ".join(
            f"{word}: {', '.join(names[:3])}{' and more' if len(names) > 3 else ''}"
            for word, names in (("missing", missing), ("unexpected", more), ("of another shape", other))
            if names
        )
        raise ValueError(f"{where} does not fit this configuration; {shown}")
