"""Rows to predict for: records, or a data frame as pandas has it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

Value: TypeAlias = float | str | Sequence[str] | None


class TacitError(Exception):
    """A refusal: the message names the row, the file or the daemon. `status` is an answer's, or 0."""

    status = 0


@runtime_checkable
class Table(Protocol):
    """The one method of a pandas.DataFrame that is used here."""

    def to_dict(self, orient: Any) -> Any: ...


Frame: TypeAlias = Iterable[Mapping[str, Value]] | Table


def rows_of(frame: Frame) -> list[dict[str, Any]]:
    """The rows as records. NaN and pandas' NA are missing values."""
    records = frame.to_dict("records") if isinstance(frame, Table) else frame
    return [{str(name): _checked(value, f"row {i}: {name}") for name, value in record.items()}
            for i, record in enumerate(records)]


def _checked(value: Any, place: str) -> Any:
    if type(value).__name__ == "NAType" or isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, float) and math.isinf(value):
        raise TacitError(f"{place} is {value}, not a finite number")
    return value
