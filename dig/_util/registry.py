"""Registries: tables by name, to which the laboratory adds rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, Generic, TypeVar

Row = TypeVar("Row")


_LABORATORY = "dig.lab"
"""The package that adds rows; its import loads nothing else."""


class Registry(Mapping[str, Row], Generic[Row]):
    """Rows by name; the laboratory and its rows are imported on demand."""

    _added: ClassVar[dict[str, dict[str, str]]] = {}

    @classmethod
    def add(cls, table: str, **places: str) -> None:
        """Add rows to a table, imported or not.

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
        self._table = table
        self._rows: dict[str, Any] = dict(rows)

    def _places(self) -> dict[str, str]:
        # A static import would turn the order of packages round. By name, a program that runs or
        # replays a method of the laboratory need not import it, and others never load it.
        import_module(_LABORATORY)
        return self._added.get(self._table, {})

    def __getitem__(self, name: str) -> Row:
        if name not in self._rows:
            module, _, attribute = self._places()[name].partition(":")
            self._rows[name] = getattr(import_module(module), attribute)
        row: Row = self._rows[name]
        return row

    def __iter__(self) -> Iterator[str]:
        return iter({**self._rows, **self._places()})

    def __len__(self) -> int:
        return sum(1 for _ in self)
