"""Reads what `tacit ledger export` has written."""

import collections
import importlib
import json
import os
from dataclasses import dataclass
from typing import Any

from .frame import TacitError


@dataclass(frozen=True)
class Ledger:
    """The ledger's head, and each learner by its id: epsilon and delta as claimed, unit, steps and more."""

    head: str
    learners: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Ledger":
        try:
            with open(path, encoding="utf-8") as file:
                exported = json.load(file)
            return cls(exported["head"], {each["learner"]: each for each in exported["learners"] if each["event"]})
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise TacitError(f"{path} is not what `tacit ledger export` writes without --raw: {error!r}") from None

    def event(self, learner: str) -> Any:
        """The charges to the learner's worst unit as a dp_accounting.DpEvent. Accountants refuse what they have no
        event for (UnsupportedDpEvent); the learner's `note` says what was charged instead."""
        events = importlib.import_module("dp_accounting")
        return events.DpEvent.from_named_tuple(_named(self.learners[learner]["event"]))


def _named(value: Any) -> Any:
    """Objects become named tuples, which DpEvent.from_named_tuple takes."""
    if isinstance(value, list):
        return [_named(each) for each in value]
    if not isinstance(value, dict):
        return value
    return collections.namedtuple("Named", value)(*map(_named, value.values()))
