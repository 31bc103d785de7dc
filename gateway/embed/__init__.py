"""Cards made ready: card + image or volume -> embedding, and embeddings kept encrypted. No DICOM, no policy."""

from gateway.embed.embedder import Embedder, card_digest, check_fixed_input, fixed_embedding, open_embedder
from gateway.embed.fixed_input import digest as fixed_input_digest
from gateway.embed.fixed_input import fixed_input
from gateway.embed.sealed import Entry
from gateway.embed.store import EmbeddingStore

__all__ = [
    "Embedder",
    "EmbeddingStore",
    "Entry",
    "card_digest",
    "check_fixed_input",
    "fixed_embedding",
    "fixed_input",
    "fixed_input_digest",
    "open_embedder",
]
