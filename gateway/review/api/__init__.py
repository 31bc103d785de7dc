"""The API of the review page: the same actions for machines, by token, described by an OpenAPI document.

`operations` lists every call; `calls` carries one out; `openapi` writes the document off the same list.
"""

from gateway.review.api.calls import Bureau, api_of
from gateway.review.api.openapi import document
from gateway.review.api.operations import OPERATIONS

__all__ = ["OPERATIONS", "Bureau", "api_of", "document"]
