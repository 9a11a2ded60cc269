# Asks a server of the Open Inference Protocol as Triton's own client does, and prints what it got as
# one line of JSON. Argument: HOST:PORT of a server of the model "ctr" of fake_snapshot.h.
import json
import sys

import numpy
import tritonclient.http as triton
from tritonclient.utils import InferenceServerException


def inputs(binary):
    made = []
    for name, datatype, values in (
            ("I1", "FP64", numpy.array([3, 7, numpy.nan])),
            ("I2", "FP64", numpy.array([-1.5, numpy.nan, numpy.nan])),
            ("C1", "BYTES", numpy.array([b"68fd1e64", b"", b""], dtype=object)),
            ("C2", "BYTES", numpy.array([b"x", b"", b"17"], dtype=object)),
            ("tags", "BYTES", numpy.array([[b"a", b"b"], [b"b", b""], [b"", b""]], dtype=object))):
        if not binary and name[0] == "I":  # JSON has no NaN
            continue
        tensor = triton.InferInput(name, list(values.shape), datatype)
        tensor.set_data_from_numpy(values, binary_data=binary)
        made.append(tensor)
    return made


def ask(client, binary_in, binary_out, **more):
    outputs = [triton.InferRequestedOutput("probability", binary_data=binary_out)]
    answer = client.infer("ctr", inputs(binary_in), outputs=outputs, **more)
    scores = answer.as_numpy("probability")
    assert scores.dtype == numpy.float32 and scores.shape == (3,), scores
    return [float(score) for score in scores], answer.get_response()


def main():
    client = triton.InferenceServerClient(url=sys.argv[1])
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready("ctr")
    assert client.is_model_ready("ctr", "6") and not client.is_model_ready("ctr", "5")
    binary, response = ask(client, True, True, request_id="42", model_version="6")
    assert response["id"] == "42", response
    mixed, _ = ask(client, True, False)
    default = client.infer("ctr", inputs(True)).as_numpy("probability")
    assert [float(score) for score in default] == binary, default
    # Requests that come as gzip; answers are asked for so, and come as the server likes.
    packed, _ = ask(client, True, True, request_compression_algorithm="gzip",
                    response_compression_algorithm="gzip")
    assert packed == binary, packed
    text, _ = ask(client, False, True)
    refusal = ""
    try:
        ask(client, True, True, model_version="5")
    except InferenceServerException as error:
        refusal = error.message()
    print(json.dumps({
        "server": client.get_server_metadata(),
        "model": client.get_model_metadata("ctr"),
        "index": client.get_model_repository_index(),
        "parameters": response["parameters"],
        "binary": binary,
        "mixed": mixed,
        "text": text,
        "refusal": refusal,
    }))


main()
