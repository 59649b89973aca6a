"""Registries: tables by name, to which packages that import them add rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

Row = TypeVar("Row")


class Registry(Mapping[str, Row], Generic[Row]):
    """Rows by name; rows that other packages add are imported on demand."""

    _added: ClassVar[dict[str, dict[str, str]]] = {}

    @classmethod
    def add(cls, table: str, **places: str) -> None:
        """Add rows to a table, which need not be imported yet.

        Args:
            table: The name of the table.
            places: By the name of each row: its place, as `module:object`.
        """
        cls._added.setdefault(table, {}).update(places)

    def __init__(self, table: str, rows: Mapping[str, Row]) -> None:
        """Make a table.

        Args:
            table: The name under which other packages add rows.
            rows: The table's own rows.
        """
        self._rows: dict[str, Any] = dict(rows)
        self._places = self._added.setdefault(table, {})

    def __getitem__(self, name: str) -> Row:
        if name not in self._rows and name in self._places:
            module, _, attribute = self._places[name].partition(":")
            self._rows[name] = getattr(import_module(module), attribute)
        row: Row = self._rows[name]
        return row

    def __iter__(self) -> Iterator[str]:
        return iter({**self._rows, **self._places})

    def __len__(self) -> int:
        return len({**self._rows, **self._places})
