"""Raw values become a click model's inputs, as its model.json says."""

import functools
import math
from array import array
from collections.abc import Mapping
from typing import Any

from .frame import TacitError

_MASK = (1 << 64) - 1
_P = (11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261)
_FLOAT_MOST = (2 - 2.0**-23) * 2.0**127


def _rotated(x: int, bits: int) -> int:
    return ((x << bits) | (x >> (64 - bits))) & _MASK


def _mixed(lane: int, data: bytes) -> int:
    return (_rotated((lane + int.from_bytes(data, "little") * _P[1]) & _MASK, 31) * _P[0]) & _MASK


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
        word = (int.from_bytes(data[at : at + 4], "little") * _P[0]) & _MASK
        h, at = (_rotated(h ^ word, 23) * _P[1] + _P[2]) & _MASK, at + 4
    for byte in data[at:]:
        h = (_rotated(h ^ ((byte * _P[4]) & _MASK), 11) * _P[0]) & _MASK
    h = ((h ^ (h >> 33)) * _P[1]) & _MASK
    h = ((h ^ (h >> 29)) * _P[2]) & _MASK
    return h ^ (h >> 32)


@functools.lru_cache(maxsize=1 << 16)
def _bucket(value: str, seed: int, buckets: int) -> int:
    return xxh64(value.encode(), seed) * buckets >> 64


def rows_of_input(about: Mapping[str, Any], value: Any) -> list[int]:
    """The rows of a table that a value has: one, or for a set one and more."""
    missing = [int(about["missing"])]
    if value is None:
        return missing
    if about["kind"] == "bin":
        z = signed_log1p(_as_float32(_finite(value)) if about["rounded_first"] else _finite(value))
        place = min(max(math.floor(z / about["width"]), about["lowest"]), about["highest"])
        return [int(1 + place - about["lowest"])]
    is_set = about["kind"] == "set"
    rows: list[int] = []
    for text in value if is_set and isinstance(value, (list, tuple)) else [value]:
        if not isinstance(text, str):
            raise TacitError("must hold strings only" if is_set else "must be a string or None")
        if text and len(rows) < about.get("most", 1):
            row = 1 + _bucket(text, int(about["seed"]), about["rows"] - 1)
            rows += [row] if row not in rows else []
    return rows or missing


def number_of_input(function: str, value: Any) -> float:
    """The number that a network reads for a value."""
    if value is None:
        return 0.0
    return _as_float32(_finite(value)) if function == "x" else signed_log1p(_finite(value))


def signed_log1p(x: float) -> float:
    return _as_float32(math.copysign(math.log1p(abs(x)), x))


def _as_float32(x: float) -> float:
    return array("f", [min(max(x, -_FLOAT_MOST), _FLOAT_MOST)])[0]


def _finite(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise TacitError("must be a number or None")
