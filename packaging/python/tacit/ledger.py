"""Reads what `tacit ledger export` has written."""

import collections
import importlib
import json
import os
from dataclasses import dataclass
from typing import Any

from .frame import TacitError, checked


@dataclass(frozen=True)
class Ledger:
    """The ledger's head, and each learner by its id: epsilon and delta as claimed, unit, steps and more."""
    head: str
    learners: dict[str, dict[str, Any]]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Ledger":
        try:
            with open(path, encoding="utf-8") as file:
                exported = checked(json.load(file), {"head": str, "learners": list})
            for i, each in enumerate(exported["learners"]):
                checked(each, {"learner": str, "event": lambda it: isinstance(it, dict | None)}, f"learners[{i}].")
        except (OSError, RecursionError, ValueError) as error:
            raise TacitError(f"{path} is not what `tacit ledger export` writes without --raw: {error}") from None
        return cls(exported["head"], {each["learner"]: each for each in exported["learners"] if each.get("event")})

    def event(self, learner: str) -> Any:
        """The charges to the learner's worst unit as a dp_accounting.DpEvent. Accountants refuse what they have no
        event for (UnsupportedDpEvent); the learner's `note` says what was charged instead."""
        try:
            text = json.dumps(self.learners[learner]["event"])
            named = json.loads(text, object_hook=lambda each: collections.namedtuple("Named", each)(*each.values()))
            return importlib.import_module("dp_accounting").DpEvent.from_named_tuple(named)
        except (AttributeError, ImportError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise TacitError(f"no event for '{learner}' of {sorted(self.learners)}: {error!r}") from None
