"""Raw values become a click model's inputs, as its model.json says."""

import functools
import math
import sys
from array import array
from collections.abc import Mapping
from typing import Any

from .frame import Rule, TacitError, checked

_MASK = (1 << 64) - 1
_P = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)
_FLOAT_MOST = (2 - 2.0**-23) * 2.0**127
_LOGARITHM = "sign(x) * log(1 + abs(x))"
_TABLE: dict[str, Rule] = {"feature": str, "rows": range(2, 2**40), "missing": (0,)}
_VALUE = _TABLE | {"seed": lambda seed: str(seed).isdecimal() and len(str(seed)) <= 20 and int(seed) <= _MASK}
_RULES: dict[str, dict[str, Rule]] = {
    "category": _VALUE, "set": {**_VALUE, "most": range(1, 2**32), "padding": (-1,)},
    "bin": {**_TABLE, "function": (f"{_LOGARITHM}, rounded to float32",), "rounded_first": bool,
            "lowest": range(-(2**31), 2**31), "width": lambda it: isinstance(it, float) and 1e-300 < it < 1e300},
    "numbers": {"missing": (0,), "of": lambda of: isinstance(of, list) and all(
        checked(each, {"feature": str, "function": ("x", _LOGARITHM)}, "of.") for each in of)}}


def checked_inputs(inputs: list[Any], of_numbers: str) -> list[dict[str, Any]]:
    """The inputs, each a category, a set or what `of_numbers` names (bin or numbers); else a ValueError."""
    for i, each in enumerate(inputs):
        kind = checked(each, {"kind": ("category", "set", of_numbers)}, f"inputs[{i}].")["kind"]
        checked(each, _RULES[kind], f"inputs[{i}].")
        if kind == "bin":
            checked(each, {"highest": (each["lowest"] + each["rows"] - 2,)}, f"inputs[{i}].")
    return inputs


def _rotated(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (64 - bits))) & _MASK


def _mixed(lane: int, data: bytes) -> int:
    return (_rotated((lane + int.from_bytes(data, "little") * _P[1]) & _MASK, 31) * _P[0]) & _MASK


@functools.lru_cache(maxsize=1 << 16)
def xxh64(data: bytes, seed: int) -> int:
    """XXH64, by its published text."""
    at, h = len(data) // 32 * 32, seed + _P[4]
    if at > 0:
        lanes = [(seed + _P[0] + _P[1]) & _MASK, (seed + _P[1]) & _MASK, seed, (seed - _P[0]) & _MASK]
        for i in range(0, at, 8):
            lanes[i // 8 % 4] = _mixed(lanes[i // 8 % 4], data[i : i + 8])
        h = sum(_rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & _MASK
        for lane in lanes:
            h = ((h ^ _mixed(0, lane.to_bytes(8, "little"))) * _P[0] + _P[3]) & _MASK
    h = (h + len(data)) & _MASK
    for at in range(at, len(data) - 7, 8):
        h = (_rotated(h ^ _mixed(0, data[at : at + 8]), 27) * _P[0] + _P[3]) & _MASK
    at = len(data) // 8 * 8
    if at + 4 <= len(data):
        word, at = int.from_bytes(data[at : at + 4], "little"), at + 4
        h = (_rotated(h ^ ((word * _P[0]) & _MASK), 23) * _P[1] + _P[2]) & _MASK
    for byte in data[at:]:
        h = (_rotated(h ^ ((byte * _P[4]) & _MASK), 11) * _P[0]) & _MASK
    h = ((h ^ (h >> 33)) * _P[1]) & _MASK
    h = ((h ^ (h >> 29)) * _P[2]) & _MASK
    return h ^ (h >> 32)


def rows_of_input(about: Mapping[str, Any], value: Any) -> list[int]:
    """The rows of a table that a value has: one, or for a set one and more."""
    if value is None:
        return [0]
    if about["kind"] == "bin":
        x = number_of_input(about["feature"], "x", value) if about["rounded_first"] else value
        z = number_of_input(about["feature"], _LOGARITHM, x)
        return [1 - about["lowest"] + min(max(math.floor(z / about["width"]), about["lowest"]), about["highest"])]
    values = value if about["kind"] == "set" and isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(each, str) or type(each) is int and -(2**63) <= each < 2**64 for each in values):
        raise TacitError(f"{about['feature']} takes strings and whole numbers only")
    hashes = [xxh64(str(each).encode(), int(about["seed"])) for each in values if each != ""]
    rows = dict.fromkeys(1 + (each * (about["rows"] - 1) >> 64) for each in hashes)
    return list(rows)[: about.get("most", 1)] or [0]


def number_of_input(name: str, function: str, value: Any) -> float:
    """The number that a network reads for a value: itself or its logarithm, in float32."""
    if value is None:
        return 0.0
    if type(value) is bool or not isinstance(value, (int, float)) or abs(value) > sys.float_info.max:
        raise TacitError(f"{name} must be a number or None")
    x = value if function == "x" else math.copysign(math.log1p(abs(value)), value)
    return array("f", [min(max(x, -_FLOAT_MOST), _FLOAT_MOST)])[0]
