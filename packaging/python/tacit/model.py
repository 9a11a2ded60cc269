"""Predicts with a click model (linear or pctr) that `tacit checkpoint export --format npy` has written."""

import json
import math
import operator
import os
import struct
from array import array
from pathlib import Path
from typing import Any

from .frame import Frame, Rule, TacitError, checked, rows_of
from .inputs import checked_inputs, number_of_input, rows_of_input

_RULES: dict[str, Rule] = {"learner": str, "model": dict, "output": ("probability",), "inputs": list,
                           "computed_in": ("f32", "bf16"), "form": ("sum", "network")}
_NETWORK: dict[str, Rule] = {"layers": range(1, 2**31),
                             "input_clip": lambda clip: isinstance(clip, float) and 0 <= clip < 1e300}


class Model:
    """A model as of one commit: `about` is its model.json, which names version, epsilon and delta. Its
    answers are /v1/score's to 1e-6; where `about["computed_in"]` is bf16, to some thousandths."""

    def __init__(self, folder: Path) -> None:
        self.about = checked(json.loads((folder / "model.json").read_bytes()), _RULES)
        self.learner, self._is_sum = str(self.about["learner"]), self.about["form"] == "sum"
        checked(self.about, {"crosses": list} if self._is_sum else _NETWORK)
        inputs = checked_inputs(self.about["inputs"], "bin" if self._is_sum else "numbers")
        self._inputs = {each["feature"]: each for each in inputs if each["kind"] != "numbers"}
        self._numbers = {of["feature"]: of["function"] for each in inputs for of in each.get("of", [])}
        self._tables = {name: _tensor(folder / f"{name}.npy", each["rows"], int(self._is_sum))
                        for name, each in self._inputs.items()}
        self._crosses, self._layers = [], []
        if self._is_sum:
            self._bias: float = _tensor(folder / "bias.npy", 1)[0][0]
            single = [name for name, each in self._inputs.items() if each["kind"] != "set"]
            pairs = [[a, b] for a in single for b in single]
            for i, cross in enumerate(self.about["crosses"]):
                a, b = checked(cross, {"table": str, "of": pairs}, f"crosses[{i}].")["of"]
                rows = self._inputs[a]["rows"] * self._inputs[b]["rows"]
                self._crosses.append((_tensor(folder / f"{cross['table']}.npy", rows, 1), a, b))
            return
        width = sum(len(table[0]) for table in self._tables.values()) + len(self._numbers)
        for i in range(self.about["layers"]):
            weight = _tensor(folder / f"layers.{i}.weight.npy", width, int(i + 1 == self.about["layers"]))
            bias, width = _tensor(folder / f"layers.{i}.bias.npy", len(weight[0])), len(weight[0])
            self._layers.append([(list(column), one[0]) for column, one in zip(zip(*weight), bias)])

    @classmethod
    def load(cls, folder: str | os.PathLike[str], learner: str | None = None) -> "Model":
        """The model of a learner in the folder of an export; `learner` may be left out where there is one."""
        found = sorted(place.parent.name for place in Path(folder).glob("*/model.json"))
        learner = found[0] if learner is None and len(found) == 1 else learner
        if learner is None or learner not in found:
            raise TacitError(f"{folder}: '{learner or ''}' names no click model (linear or pctr) of {found}")
        try:
            return cls(Path(folder) / learner)
        except (OSError, RecursionError, ValueError) as error:
            raise TacitError(f"{folder}/{learner}/model.json: {error}") from None

    def predict(self, frame: Frame) -> list[float]:
        """A probability for each row. Unknown features and values of a wrong type are refused."""
        probabilities = []
        for i, row in enumerate(rows_of(frame)):
            if unknown := row.keys() - self._inputs.keys() - self._numbers.keys():
                raise TacitError(f"row {i}: the model has no feature '{min(unknown)}'")
            try:
                rows = {name: rows_of_input(about, row.get(name)) for name, about in self._inputs.items()}
                numbers = [number_of_input(name, function, row.get(name)) for name, function in self._numbers.items()]
            except TacitError as error:
                raise TacitError(f"row {i}: {error}") from None
            logit = self._sum(rows) if self._is_sum else self._network(rows, numbers)
            probabilities.append(1 / (1 + math.exp(-logit)) if logit > -700 else 0.0)
        return probabilities

    def _sum(self, rows: dict[str, list[int]]) -> float:
        logit = sum(sum(self._tables[name][row][0] for row in at) / math.sqrt(len(at)) for name, at in rows.items())
        return float(self._bias + logit + sum(weights[rows[a][0] * self._inputs[b]["rows"] + rows[b][0]][0]
                                              for weights, a, b in self._crosses))

    def _network(self, rows: dict[str, list[int]], numbers: list[float]) -> float:
        x = [sum(each) for name, at in rows.items() for each in zip(*(self._tables[name][row] for row in at))] + numbers
        # A little less than the length, as the daemon scales.
        most, length = self.about["input_clip"] * (1 - 2.0**-20), math.sqrt(sum(map(operator.mul, x, x)))
        x = [each * most / length for each in x] if 0 < most < length else x
        for i, layer in enumerate(self._layers):
            x = [max(0.0, each) for each in x] if i > 0 else x
            x = [sum(map(operator.mul, column, x)) + bias for column, bias in layer]
        return float(x[0])


def _tensor(path: Path, *shape: int) -> list["array[float]"]:
    """The rows of a tensor of finite numbers, row by row in the file. A width of 0 stands for any."""
    try:
        raw = path.read_bytes()
        begin = 10 + int.from_bytes(raw[8:10], "little")
        numbers = array("f", struct.unpack(f"<{(len(raw) - begin) // 4}f", raw[begin:]))
        shape = tuple(side or len(numbers) // shape[0] for side in shape)
        head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
        is_whole = raw[:8] == b"\x93NUMPY\x01\x00" and raw[10:begin].strip() == head.encode() and len(numbers) > 0
        if not is_whole or len(numbers) != math.prod(shape) or not all(map(math.isfinite, numbers)):
            raise ValueError(f"{len(raw)} bytes, in place of finite numbers behind {head}")
    except (OSError, ValueError, ZeroDivisionError, struct.error) as error:
        raise TacitError(f"{path} is no tensor that an export has written: {error}") from None
    return [numbers[i : i + len(numbers) // shape[0]] for i in range(0, len(numbers), len(numbers) // shape[0])]
