"""Cards made ready: card + image or volume -> embedding. Knows cards and arrays; no DICOM, no policy."""

from gateway.embed.embedder import Embedder, open_embedder

__all__ = ["Embedder", "open_embedder"]
