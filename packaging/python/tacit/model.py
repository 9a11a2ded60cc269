"""Predicts with a click model (linear or pctr) that `tacit checkpoint export --format npy` has written."""

import ast
import json
import math
import operator
import os
import struct
import sys
from array import array
from pathlib import Path
from typing import Any

from .frame import Frame, TacitError, rows_of
from .inputs import number_of_input, rows_of_input


class Model:
    """A model as of one commit: `about` is its model.json, which names version, epsilon and delta. Its
    answers are /v1/score's to 1e-6; where `about["computed_in"]` is bf16, to some thousandths."""

    def __init__(self, folder: Path) -> None:
        self.about: dict[str, Any] = json.loads((folder / "model.json").read_text())
        self.learner: str = self.about["learner"]
        inputs = self.about["inputs"]
        self._inputs = {each["feature"]: each for each in inputs if each["kind"] != "numbers"}
        self._numbers = {of["feature"]: of["function"] for each in inputs for of in each.get("of", [])}
        self._tables = {name: _tensor(folder / f"{name}.npy", each["rows"]) for name, each in self._inputs.items()}
        if self.about["form"] == "sum":
            self._bias = _tensor(folder / "bias.npy", 1)[0][0]
            self._crosses = [(_tensor(folder / f"{cross['table']}.npy",
                                      math.prod(self._inputs[name]["rows"] for name in cross["of"])), *cross["of"])
                             for cross in self.about["crosses"]]
            return
        self._layers, width = [], sum(len(table[0]) for table in self._tables.values()) + len(self._numbers)
        for i in range(self.about["layers"]):
            weight = _tensor(folder / f"layers.{i}.weight.npy", width)
            bias, width = _tensor(folder / f"layers.{i}.bias.npy", len(weight[0])), len(weight[0])
            self._layers.append([(list(column), one[0]) for column, one in zip(zip(*weight), bias)])

    @classmethod
    def load(cls, folder: str | os.PathLike[str], learner: str | None = None) -> "Model":
        """The model of a learner in the folder of an export; `learner` may be left out where there is one."""
        found = sorted(place.parent.name for place in Path(folder).glob("*/model.json"))
        if learner is None and len(found) == 1:
            learner = found[0]
        if learner is None or learner not in found:
            raise TacitError(f"{folder}: '{learner or ''}' names no click model (linear or pctr) of {found}")
        try:
            return cls(Path(folder) / learner)
        except (LookupError, TypeError, ValueError) as error:
            raise TacitError(f"{folder}/{learner}/model.json: {error!r}") from None

    def predict(self, frame: Frame) -> list[float]:
        """A probability for each row. Unknown features and values of a wrong type are refused."""
        probabilities = []
        for i, row in enumerate(rows_of(frame)):
            rows, numbers, feature = {}, [], ""
            if unknown := row.keys() - self._inputs.keys() - self._numbers.keys():
                raise TacitError(f"row {i}: the model has no feature '{min(unknown)}'")
            try:
                for feature, about in self._inputs.items():
                    rows[feature] = rows_of_input(about, row.get(feature))
                for feature, function in self._numbers.items():
                    numbers.append(number_of_input(function, row.get(feature)))
            except TacitError as error:
                raise TacitError(f"row {i}: {feature} {error}") from None
            logit = self._sum(rows) if self.about["form"] == "sum" else self._network(rows, numbers)
            probabilities.append(1 / (1 + math.exp(-logit)) if logit > -700 else 0.0)
        return probabilities

    def _sum(self, rows: dict[str, list[int]]) -> float:
        logit = self._bias
        for name, at in rows.items():
            logit += sum(self._tables[name][row][0] for row in at) / math.sqrt(len(at))
        for weights, first, second in self._crosses:
            logit += weights[rows[first][0] * self._inputs[second]["rows"] + rows[second][0]][0]
        return logit

    def _network(self, rows: dict[str, list[int]], numbers: list[float]) -> float:
        x: list[float] = []
        for name, at in rows.items():
            x += map(sum, zip(*(self._tables[name][row] for row in at)))
        x += numbers
        # A little less than the length, as the daemon scales.
        most, length = self.about["input_clip"] * (1 - 2.0**-20), math.sqrt(sum(map(operator.mul, x, x)))
        if 0 < most < length:
            x = [each * most / length for each in x]
        for i, layer in enumerate(self._layers):
            if i > 0:
                x = [max(0.0, each) for each in x]
            x = [sum(map(operator.mul, column, x)) + bias for column, bias in layer]
        return x[0]


def _tensor(path: Path, rows: int) -> list["array[float]"]:
    """The rows of a tensor; a tensor of one dimension has rows of one number. Another count of rows is refused."""
    try:
        raw = path.read_bytes()
        end = 10 + struct.unpack_from("<8xH", raw)[0]
        header = ast.literal_eval(raw[10:end].decode("latin-1"))
        count, width = (*header["shape"], 1)[:2]
        whole = header["descr"] == "<f4" and len(raw) == end + 4 * count * width
        if raw[:8] != b"\x93NUMPY\x01\x00" or not whole or count != rows:
            raise ValueError(f"{len(raw)} bytes for {header} and {rows} rows")
        numbers = array("f", raw[end:])
    except (OSError, SyntaxError, ValueError, LookupError, TypeError, struct.error) as error:
        raise TacitError(f"{path} is no tensor that an export has written: {error}") from None
    if sys.byteorder == "big":
        numbers.byteswap()
    return [numbers[i * width : (i + 1) * width] for i in range(count)]
