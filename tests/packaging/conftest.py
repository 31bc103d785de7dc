"""The chart, loaded once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.packaging.rendering import Render


@pytest.fixture(scope="session")
def chart() -> Iterator[Any]:
    from tests.packaging.rendering import CHART, helm  # skips where Helm's engine has no wheel

    with helm.Chart.load(str(CHART)) as loaded:
        yield loaded


@pytest.fixture
def render(chart: Any) -> Render:
    from tests.packaging.rendering import Render

    return Render(chart)
