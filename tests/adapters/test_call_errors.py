"""Exceptions as wrapped agents raise them."""

from __future__ import annotations

from asyncio import CancelledError

import pytest

from dig.adapters.base.call_errors import is_called_off


def grouped(depth: int, *leaves: BaseException) -> BaseException:
    """Groups in groups, the innermost with the leaves."""
    error: BaseException = BaseExceptionGroup("innermost", leaves)
    for _ in range(depth):
        error = BaseExceptionGroup("outer", [error])
    return error


@pytest.mark.parametrize("depth", [0, 5_000])
def test_a_group_is_called_off_exactly_if_all_its_members_are(depth: int) -> None:
    assert is_called_off(grouped(depth, CancelledError(), CancelledError()))
    assert not is_called_off(grouped(depth, CancelledError(), ValueError()))
