"""References to rows: what travels of a model instance, and how the row comes back.

Of a saved instance the label of its model, its primary key and its database travel, and nothing of what it holds: that
may be another thing by then. Right before the job's own code, in the thread that runs it, all rows that its arguments
refer to are loaded, those of one model and database in one query. One that is gone raises `MissingRow`, and the job's
option `missing_row` says what becomes of it.

Whoever looks at arguments without running them (the api, assertions) gets a `ModelReference`, and no query is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models import Model

from django_cogworker.exceptions import ArgumentError, MissingRow, UnknownFormat


class ModelReference:
    """A row by model, primary key and database. It equals an instance of that row."""

    __slots__ = ("db", "label", "pk")

    def __init__(self, label: str, pk: Any, db: str = DEFAULT_DB_ALIAS) -> None:
        #: Such as `shop.Order`.
        self.label = label
        self.pk = pk
        self.db = db

    @property
    def model(self) -> type[Model]:
        """The model. Raises `UnknownFormat` where this project does not have it, or not its database."""
        try:
            model: type[Model] = apps.get_model(self.label)
        except (LookupError, ValueError, AttributeError):
            raise UnknownFormat(
                f"An argument is a {self.label!r}, a model that is not known here."
            ) from None
        if self.db not in connections.settings:
            raise UnknownFormat(f"An argument is {self}: DATABASES has no {self.db!r} here.")
        return model

    def load(self) -> Model:
        """The row as it is now. Raises `MissingRow`."""
        found = _load(self.model, self.db, [self.pk])
        if self.pk not in found:
            raise MissingRow(f"{self} is not there any more.")
        return found[self.pk]

    def __repr__(self) -> str:
        db = "" if self.db == DEFAULT_DB_ALIAS else f", db={self.db!r}"
        return f"{self.label}({self.pk!r}{db})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Model):
            return other.pk is not None and other._meta.label == self.label and other.pk == self.pk
        if not isinstance(other, ModelReference):
            return NotImplemented
        return (self.label, self.pk, self.db) == (other.label, other.pk, other.db)

    def __hash__(self) -> int:
        return hash(self.pk)  # as that of an instance


def reference_to(instance: Model, where: str) -> ModelReference:
    """The reference to a saved instance. Raises `ArgumentError` for one that is not, with `where` as its name."""
    meta, pk, db = instance._meta, instance.pk, instance._state.db
    composite: Any = getattr(meta, "pk_fields", ())
    lacking = any(each is None for each in pk) if isinstance(pk, tuple) else pk is None
    if lacking or instance._state.adding:
        raise ArgumentError(
            f"{where} is a {meta.label} that is not saved, so no worker could load it. Save it before the call."
        )
    if isinstance(pk, tuple):
        pk = tuple(field.to_python(each) for field, each in zip(composite, pk, strict=True))
    elif meta.pk is not None:
        pk = meta.pk.to_python(pk)  # `Order(pk="5")` is the row 5
    return ModelReference(meta.label, pk, db or DEFAULT_DB_ALIAS)


#: All references of a job's arguments, each with the path of the argument that it is.
FindReferences = Callable[[dict[str, Any]], Iterator[tuple[str, ModelReference]]]


class Rows:
    """The rows that the arguments of one job refer to, loaded when the first of them is asked for."""

    __slots__ = ("_find", "_found", "_payload")

    def __init__(self, payload: dict[str, Any], find: FindReferences) -> None:
        self._payload = payload
        self._find = find
        self._found: dict[ModelReference, Model] | None = None

    def __call__(self, reference: ModelReference) -> Model:
        """The instance. Raises `MissingRow` where any row of them is gone."""
        if self._found is None:
            self._found = self._load()
        return self._found[reference]

    def _load(self) -> dict[ModelReference, Model]:
        wanted = list(self._find(self._payload))
        groups: dict[tuple[type[Model], str], list[Any]] = {}
        for _, each in wanted:
            groups.setdefault((each.model, each.db), []).append(each.pk)
        rows = {(model, db): _load(model, db, pks) for (model, db), pks in groups.items()}
        missing = [
            f"{path} is {each!r}"
            for path, each in wanted
            if each.pk not in rows[each.model, each.db]
        ]
        if missing:
            more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
            error = MissingRow(f"{missing[0]}, which is not there any more{more}.")
            error.jid = self._payload["jid"]
            raise error
        return {each: rows[each.model, each.db][each.pk] for _, each in wanted}


def _load(model: type[Model], db: str, pks: list[Any]) -> dict[Any, Model]:
    """By the manager that sees every row: a default one may hide those that count as deleted."""
    return dict(model._base_manager.using(db).in_bulk(list(dict.fromkeys(pks))))
