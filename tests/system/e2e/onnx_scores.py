# Scores raw events with an exported model, as a stock reader would: onnxruntime runs model.onnx, and
# the events become its inputs by what model.json says of them, as packaging/python reads it.
#   onnx_scores.py ONNXRUNTIME_FOLDER MODEL_FOLDER EVENTS     (EVENTS: a list of objects of features)
# Prints the list of probabilities.
import json
import pathlib
import sys

import numpy

sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1], str(pathlib.Path(__file__).parents[3] / "packaging/python")]
import onnxruntime
from tacit.inputs import number_of_input, rows_of_input


def input_of(about, events):
    if about["kind"] == "numbers":
        rows = [[number_of_input(n["feature"], n["function"], e.get(n["feature"])) for n in about["of"]]
                for e in events]
        return numpy.array(rows, dtype=about["dtype"])
    rows = [rows_of_input(about, event.get(about["feature"])) for event in events]
    if about["kind"] != "set":
        return numpy.array(rows, dtype=about["dtype"])[:, 0]
    widest = max(map(len, rows))
    return numpy.array([each + [about["padding"]] * (widest - len(each)) for each in rows], dtype=about["dtype"])


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
