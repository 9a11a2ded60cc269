# Scores raw events with an exported model, as a stock reader would: onnxruntime runs model.onnx, and
# the events become its inputs by what model.json says of them, with XXH64 by its published text.
#   onnx_scores.py ONNXRUNTIME_FOLDER MODEL_FOLDER EVENTS     (EVENTS: a list of objects of features)
# Prints the list of probabilities. XXH64 itself is checked against its published vectors.
import json
import math
import sys

import numpy

sys.path.insert(0, sys.argv[1])
import onnxruntime

MASK = (1 << 64) - 1
P = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)


def rotated(x, bits):
    return ((x << bits) | (x >> (64 - bits))) & MASK


def mixed(lane, word):
    return (rotated((lane + word * P[1]) & MASK, 31) * P[0]) & MASK


def xxh64(data, seed):
    at, size = 0, len(data)
    if size >= 32:
        lanes = [(seed + P[0] + P[1]) & MASK, (seed + P[1]) & MASK, seed, (seed - P[0]) & MASK]
        while at + 32 <= size:
            for i in range(4):
                lanes[i] = mixed(lanes[i], int.from_bytes(data[at : at + 8], "little"))
                at += 8
        h = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18))) & MASK
        for lane in lanes:
            h = ((h ^ mixed(0, lane)) * P[0] + P[3]) & MASK
    else:
        h = (seed + P[4]) & MASK
    h = (h + size) & MASK
    while at + 8 <= size:
        h ^= mixed(0, int.from_bytes(data[at : at + 8], "little"))
        h = (rotated(h, 27) * P[0] + P[3]) & MASK
        at += 8
    if at + 4 <= size:
        h ^= (int.from_bytes(data[at : at + 4], "little") * P[0]) & MASK
        h = (rotated(h, 23) * P[1] + P[2]) & MASK
        at += 4
    for byte in data[at:]:
        h = (rotated(h ^ ((byte * P[4]) & MASK), 11) * P[0]) & MASK
    h = ((h ^ (h >> 33)) * P[1]) & MASK
    h = ((h ^ (h >> 29)) * P[2]) & MASK
    return h ^ (h >> 32)


assert xxh64(b"", 0) == 0xEF46DB3751D8E999
assert xxh64(b"Nobody inspects the spammish repetition", 0) == 0xFBCEA83C8A378BF1


def row_of(value, about):
    if value is None or value == "":
        return about["missing"]
    return 1 + (xxh64(value.encode(), int(about["seed"])) * (about["rows"] - 1) >> 64)


def rows_of(values, about):
    rows = []
    for value in values or []:
        row = row_of(value, about)
        if value != "" and row not in rows and len(rows) < about["most"]:
            rows.append(row)
    return rows or [about["missing"]]


def number(value, function):
    if value is None:
        return 0.0
    if function == "x":
        return value
    assert function == "sign(x) * log(1 + abs(x))", function
    return math.copysign(math.log1p(abs(value)), value)


def bin_of(value, about):
    if value is None:
        return about["missing"]
    if about["rounded_first"]:
        value = float(numpy.float32(value))
    z = float(numpy.float32(math.copysign(math.log1p(abs(value)), value)))
    where = min(max(math.floor(z / about["width"]), about["lowest"]), about["highest"])
    return 1 + where - about["lowest"]


def input_of(about, events):
    kind = about["kind"]
    if kind == "numbers":
        rows = [[number(e.get(n["feature"]), n["function"]) for n in about["of"]] for e in events]
        return numpy.array(rows, dtype=about["dtype"])
    values = [event.get(about["feature"]) for event in events]
    if kind == "set":
        sets = [rows_of(value, about) for value in values]
        widest = max(len(rows) for rows in sets)
        padded = [rows + [about["padding"]] * (widest - len(rows)) for rows in sets]
        return numpy.array(padded, dtype=about["dtype"])
    one = {"category": row_of, "bin": bin_of}[kind]
    return numpy.array([one(value, about) for value in values], dtype=about["dtype"])


folder = sys.argv[2]
about = json.load(open(folder + "/model.json"))
events = json.load(open(sys.argv[3]))
session = onnxruntime.InferenceSession(folder + "/model.onnx", providers=["CPUExecutionProvider"])
facts = session.get_modelmeta().custom_metadata_map
assert json.loads(facts["inputs"]) == about, "the model and the file beside it say the same"
assert set(facts) == {"inputs", "version", "head", "epsilon", "delta"}, sorted(facts)
inputs = {one["input"]: input_of(one, events) for one in about["inputs"]}
assert set(inputs) == {one.name for one in session.get_inputs()}
(scores,) = session.run([about["output"]], inputs)
assert scores.shape == (len(events),) and scores.dtype == numpy.float32
print(json.dumps([float(score) for score in scores]))
