# Reads an export in all its forms and fails unless they hold the same numbers, bit for bit: the
# safetensors file by its published format, the .npy and .csv files by numpy.
#   same_tensors.py FOLDER   (with safetensors/, npy/ and csv/ in it)
import json
import struct
import sys

import numpy

root = sys.argv[1]
raw = open(root + "/safetensors/model.safetensors", "rb").read()
(length,) = struct.unpack("<Q", raw[:8])
header = json.loads(raw[8 : 8 + length])
facts = header.pop("__metadata__")
assert set(facts) >= {"version", "head", "epsilon", "delta"}, facts
end = 0
for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
    assert tensor["dtype"] == "F32"
    begin, stop = tensor["data_offsets"]
    assert begin == end, f"{name}: there is a hole before it"
    end = stop
    numbers = numpy.frombuffer(raw[8 + length + begin : 8 + length + stop], "<f4")
    numbers = numbers.reshape(tensor["shape"])
    array = numpy.load(f"{root}/npy/{name}.npy")
    assert array.dtype == numpy.dtype("<f4") and array.shape == numbers.shape, name
    assert array.tobytes() == numbers.tobytes(), name
    lines = numpy.loadtxt(f"{root}/csv/{name}.csv", delimiter=",", skiprows=1, dtype=numpy.float64, ndmin=2)
    head = open(f"{root}/csv/{name}.csv").readline().rstrip("\n").split(",")
    assert head == ["row"] + [str(i) for i in range(lines.shape[1] - 1)], (name, head)
    assert (lines[:, 0] == numpy.arange(len(lines))).all(), name
    assert lines[:, 1:].astype("<f4").tobytes() == numbers.tobytes(), name
assert end == len(raw) - 8 - length, "bytes are left over"
print(len(header))
