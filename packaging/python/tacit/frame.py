"""Rows to predict for (records, or a data frame as pandas has it), and rules for JSON from outside."""

import json
import math
import reprlib
from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any, Protocol, TypeAlias, runtime_checkable

Value: TypeAlias = float | str | list[str] | list[int] | list[str | int] | tuple[str | int, ...] | None
Frame: TypeAlias = "Iterable[Mapping[str, Value]] | Table"
Rule: TypeAlias = type[Any] | Callable[[Any], bool] | Container[Any]


class TacitError(Exception):
    """A refusal: the message names the row, the file or the daemon. `status` is an answer's, or 0."""
    status = 0


@runtime_checkable
class Table(Protocol):  # a pandas.DataFrame, for example
    def to_dict(self, orient: Any) -> Any: ...


def rows_of(frame: Frame) -> list[dict[str, Any]]:
    """The rows as records. NaN and pandas' NA are missing values."""
    records = list(frame.to_dict("records") if isinstance(frame, Table) else frame)
    if others := [i for i, record in enumerate(records) if not isinstance(record, Mapping)]:
        raise TacitError(f"row {others[0]} is no record: {type(records[others[0]]).__name__}")
    return [{str(name): plain(value, f"row {i}: {name}") for name, value in record.items()}
            for i, record in enumerate(records)]


def plain(value: Any, place: str) -> Any:
    """A value that JSON can hold."""
    if type(value).__name__ == "NAType" or isinstance(value, float) and math.isnan(value):
        return None
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except (RecursionError, TypeError, ValueError) as error:
        raise TacitError(f"{place} is no finite number, text or list: {error}") from None
    return value


def checked(value: Any, rules: Mapping[str, Rule], place: str = "") -> dict[str, Any]:
    """The object, if each key has its type, is taken by its function or is one of its values; else a ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"{place.rstrip('.') or 'it'} is no object: {reprlib.repr(value)}")
    for key, rule in rules.items():
        found = value.get(key)
        is_whole = type(found) is int or not isinstance(rule, range)
        keeps = (isinstance(found, rule) if isinstance(rule, type) else rule(found) if callable(rule)
                 else is_whole and found in rule)
        if not keeps:
            raise ValueError(f"{place}{key} must not be {reprlib.repr(found) if key in value else 'missing'}")
    return value
