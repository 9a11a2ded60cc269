"""packaging/python: a daemon is asked, exported models predict as it does, and an exported ledger is read.

python_test.py TREE PROGRAMS. One daemon learns from events with features of every kind, and each kind of model answers.
The page docs/using/judged-model.md is run with its notebook. Types, the wheel, the page and events of dp_accounting
need `tools/pypi python fetch`; where it is missing they are left out, and fail where TACIT_REQUIRE holds python.
"""

import csv
import json
import math
import os
import pathlib
import random
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import zipfile

from python_world import BATCH, EVENTS, PROGRAMS, TREE, Daemon, done, features, run, write_world

PACKAGE = TREE / "packaging/python"
RUN_NOTEBOOK = TREE / "tests/system/python/run_notebook.py"
PAGE, NOTEBOOK = (TREE / f"docs/using/judged-model.{kind}" for kind in ("md", "ipynb"))
sys.path[:0] = [str(PACKAGE), str(TREE / "tests/system/readme")]
import readme_commands  # noqa: E402
import tacit  # noqa: E402
from tacit.inputs import xxh64  # noqa: E402

ASKED = 1000
LINES_MOST = 400  # of the wheel


def has_learnt(client):
    try:
        return min(each["steps"] for each in client.privacy()["learners"]) >= EVENTS // BATCH
    except tacit.TacitError:
        return False


def setUpModule():
    global FOLDER, DAEMON, CLIENT, RELEASE, ROWS
    FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="py"))
    unittest.addModuleCleanup(shutil.rmtree, FOLDER)
    write_world(FOLDER)
    DAEMON = Daemon(FOLDER, "trains")
    unittest.addModuleCleanup(DAEMON.stop)
    CLIENT = tacit.Client(f"http://127.0.0.1:{DAEMON.port()}")
    DAEMON.until("all is learnt", lambda: has_learnt(CLIENT))
    done("tacit", "checkpoint", "create", "--url", DAEMON.operators, "--kind", "release")
    RELEASE = next(FOLDER.glob("store.checkpoints/release-*"))
    done("tacit", "checkpoint", "export", RELEASE, "--config", FOLDER / "clicks.yaml", "--format", "npy",
         "--output", FOLDER / "tensors")
    rng = random.Random(77)
    ROWS = [features(rng) for _ in range(ASKED)]


def packages(test):
    """The folder of the packages of PyPI, or the end of the test."""
    ready = subprocess.run([TREE / "tools/pypi", "python", "ready"], capture_output=True, text=True)
    if ready.returncode == 0:
        return ready.stdout.strip()
    if "python" in os.environ.get("TACIT_REQUIRE", "").split(","):
        test.fail(f"TACIT_REQUIRE has python: {ready.stdout}")
    test.skipTest(ready.stdout.strip())


def largest_difference(some, others):
    assert len(some) == len(others), (len(some), len(others))
    return max(abs(one - other) for one, other in zip(some, others))


class Frames(unittest.TestCase):
    def test_gaps_are_missing_and_infinity_is_refused(self):
        class Table:  # as a pandas.DataFrame
            def to_dict(self, orient):
                assert orient == "records"
                return [{"price": math.nan, "colour": type("NAType", (), {})()}, {"price": 1.5, "colour": "c1"}]

        self.assertEqual(tacit.frame.rows_of(Table()), [{"price": None, "colour": None}, {"price": 1.5, "colour": "c1"}])

    def test_others_are_refused_by_row(self):
        for value in (-math.inf, 10**5000, {1}, b"1", complex(1), "\ud800", ["t1", math.nan], {"a": object()}):
            with self.subTest(type(value)), self.assertRaisesRegex(tacit.TacitError, "row 1: price is no finite number"):
                tacit.frame.rows_of([{}, {"price": value}])
        for frame in ({"price": 3}, ["price"], [3], [None]):
            with self.subTest(frame), self.assertRaisesRegex(tacit.TacitError, "row 0 is no record"):
                tacit.frame.rows_of(frame)


class Hashes(unittest.TestCase):
    def test_the_published_vectors(self):
        state, buffer = 2654435761, bytearray()
        vectors, texts = (list(csv.DictReader((TREE / f"tests/golden/xxh64_{name}.csv").read_text().splitlines()))
                          for name in ("sanity", "text"))
        while len(buffer) < max(int(each["length"]) for each in vectors):
            buffer.append(state >> 56)
            state = state * 11400714785074694797 % 2**64
        for each in vectors:
            self.assertEqual(f"{xxh64(bytes(buffer[:int(each['length'])]), int(each['seed'], 16)):016x}", each["hash"], each)
        for each in texts:
            self.assertEqual(f"{xxh64(each['text'].encode(), 0):016x}", each["hash"], each)
        self.assertGreater(min(len(vectors), len(texts)), 2)


class Models(unittest.TestCase):
    def test_an_exported_model_predicts_as_the_daemon_does(self):
        for learner, most in (("net", 1e-6), ("clipped", 1e-6), ("sums", 1e-6), ("rounded", .01)):
            served, model = CLIENT.score(ROWS, learner), tacit.Model.load(FOLDER / "tensors", learner)
            self.assertLess(largest_difference(served, model.predict(ROWS)), most, learner)
            self.assertGreater(max(served) - min(served), 1e-3, f"{learner}: rows that score alike show nothing")
            self.assertEqual(model.about["model"]["version"], str(served.models[0]["version"]))

    def test_whole_numbers_are_categories_by_their_digits(self):
        least, most = -(2**63), 2**64 - 1
        rows = [{"colour": 17}, {"colour": 0}, {"colour": least}, {"colour": most}, {"tags": [3, "4", most]}, {"tags": 3},
                {"seen": -0.0, "price": -0.0}, {"seen": most, "price": -1e308}, {"seen": 1e308, "price": -1e-320}]
        texts = [{"colour": "17"}, {"colour": "0"}, {"colour": str(least)}, {"colour": str(most)},
                 {"tags": ["3", "4", str(most)]}, {"tags": "3"}]
        for learner in ("net", "sums"):
            model = tacit.Model.load(FOLDER / "tensors", learner)
            served, predicted = CLIENT.score(rows, learner), model.predict(rows)
            self.assertLess(largest_difference(served[:-1], predicted[:-1]), 1e-6, learner)
            # The last row's input is a logarithm of 709: the products that a float rounds are as much larger.
            self.assertLess(largest_difference(served[-1:], predicted[-1:]), 709e-6, learner)
            self.assertEqual(model.predict(rows[: len(texts)]), model.predict(texts))
            for value in (least - 1, most + 1, 1.0, True):
                with self.subTest(value), self.assertRaises(tacit.TacitError):
                    CLIENT.score([{"colour": value}], learner)
                with self.subTest(value), self.assertRaisesRegex(tacit.TacitError, "row 0: colour takes strings and whole"):
                    model.predict([{"colour": value}])

    def test_another_seed_or_cross_is_seen(self):
        served, model = CLIENT.score(ROWS, "sums"), tacit.Model.load(FOLDER / "tensors", "sums")
        (weights, first, second), = model._crosses
        model._crosses = [(weights[1:] + weights[:1], first, second)]
        self.assertGreater(largest_difference(served, model.predict(ROWS)), 1e-6)
        model._crosses = [(weights, first, second)]
        model._inputs["site"]["seed"] = "1"
        self.assertGreater(largest_difference(served, model.predict(ROWS)), 1e-6)

    def test_bad_rows_are_refused_by_name(self):
        model = tacit.Model.load(FOLDER / "tensors", "net")
        for row, words in (({"colr": "c1"}, "row 1: the model has no feature 'colr'"),
                           ({"colour": ["c1"]}, "row 1: colour takes strings and whole numbers only"),
                           ({"tags": ["t1", 2.5]}, "row 1: tags takes strings and whole numbers only"),
                           ({"seen": 10**400}, "row 1: seen must be a number or None"),
                           ({"seen": "3"}, "row 1: seen must be a number or None"),
                           ({"seen": True}, "row 1: seen must be a number or None")):
            with self.subTest(row), self.assertRaisesRegex(tacit.TacitError, words):
                model.predict([{}, row])

    def test_other_models_and_folders_are_refused_by_name(self):
        found = r"\['clipped', 'net', 'rounded', 'sums'\]"
        with self.assertRaisesRegex(tacit.TacitError, rf"'counts' names no click model \(linear or pctr\) of {found}"):
            tacit.Model.load(FOLDER / "tensors", "counts")
        with self.assertRaisesRegex(tacit.TacitError, f"tensors: '' names no click model .*{found}"):
            tacit.Model.load(FOLDER / "tensors")
        done("tacit", "checkpoint", "export", RELEASE, "--config", FOLDER / "clicks.yaml", "--format", "safetensors",
             "--learner", "sums", "--output", FOLDER / "packed")
        with self.assertRaisesRegex(tacit.TacitError, "packed/sums/colour.npy is no tensor"):
            tacit.Model.load(FOLDER / "packed")

    def test_damaged_tensors_are_refused_by_name(self):
        shutil.copytree(FOLDER / "tensors", FOLDER / "damaged")
        place = FOLDER / "damaged/net/layers.1.bias.npy"
        whole = place.read_bytes()
        for damaged in (b"", whole[:-1], whole[:40], b"\x93NUMPX" + whole[6:], whole.replace(b"<f4", b"<f8")):
            place.write_bytes(damaged)
            with self.subTest(damaged), self.assertRaisesRegex(tacit.TacitError, "layers.1.bias.npy is no tensor"):
                tacit.Model.load(FOLDER / "damaged", "net")
        place.write_bytes(whole)
        tacit.Model.load(FOLDER / "damaged", "net")
        for learner, table, other in (("net", "colour", "tags"), ("net", "layers.0.weight", "layers.1.weight"),
                                      ("sums", "colour*seen", "colour")):
            shutil.copy(FOLDER / f"damaged/{learner}/{other}.npy", FOLDER / f"damaged/{learner}/{table}.npy")
            with self.assertRaisesRegex(tacit.TacitError, rf"{learner}/{re.escape(table)}.npy is no tensor"):
                tacit.Model.load(FOLDER / "damaged", learner)
            shutil.copy(FOLDER / f"tensors/{learner}/{table}.npy", FOLDER / f"damaged/{learner}/{table}.npy")
        for text in ("[]", "{", "[" * 100000, '{"learner": "net", "inputs": []}'):
            (FOLDER / "damaged/net/model.json").write_text(text)
            with self.assertRaisesRegex(tacit.TacitError, "net/model.json: "):
                tacit.Model.load(FOLDER / "damaged", "net")

    def test_tensors_of_another_shape_order_or_value_are_refused(self):
        shutil.copytree(FOLDER / "tensors", FOLDER / "shaped")
        for learner, table, rows, width in (("sums", "colour", 64, 1), ("sums", "bias", 1, None), ("net", "colour", 64, 4),
                                            ("net", "layers.2.weight", 8, 1)):
            path = FOLDER / f"shaped/{learner}/{table}.npy"
            whole, shape = path.read_bytes(), (rows,) if width is None else (rows, width)
            numbers = [.5] * math.prod(shape)
            path.write_bytes(tensor(shape, numbers))
            tacit.Model.load(FOLDER / "shaped", learner)
            wrong = [tensor(shape, numbers, "True"), tensor(shape, numbers, descr=">f4"), tensor((rows, 0), []),
                     tensor((rows, 1, 1), [.5] * rows), tensor((rows + 1, *shape[1:]), numbers),
                     tensor((-rows, -1), numbers), tensor("ab", numbers), tensor(shape, numbers)[:10]]
            wrong += [tensor(shape, numbers[1:] + [bad]) for bad in (math.nan, math.inf, -math.inf)]
            if (learner, table) != ("net", "colour"):
                wrong.append(tensor((rows, 2), [.5] * rows * 2))
            for raw in wrong:
                path.write_bytes(raw)
                with self.subTest(raw[:90]), self.assertRaisesRegex(tacit.TacitError, f"{table}.npy is no tensor"):
                    tacit.Model.load(FOLDER / "shaped", learner)
            path.write_bytes(whole)

    def test_each_key_of_model_json_is_held_to_its_rule(self):
        shutil.copytree(FOLDER / "tensors", FOLDER / "keys")
        texts, seeds = (3, None, []), ("-1", "x", "", str(2**64), None, "1" * 5000)
        table = {"feature": texts, "rows": ("64", 0, 1, -5, 64.0, True, None), "missing": (-1, 9999, None)}
        rules = {  # kind: key: values that an export does not write
            "category": {**table, "seed": seeds, "kind": ("blob", None, [])},
            "set": {**table, "seed": seeds, "most": (0, "3", 1.5, None), "padding": (0, None)},
            "bin": {**table, "width": (0, 0.0, -1.0, math.nan, math.inf, 1e-320, None), "lowest": (2**40, .5, None),
                    "highest": (100, -100, None), "rounded_first": ("no", None), "function": ("x", None), "kind": ("numbers",)},
            "numbers": {"missing": (1, None), "of": (3, None, [3], [{"feature": "seen", "function": "sqrt(x)"}]),
                        "kind": ("bin",)}}
        forms = {"net": {"layers": (0, -1, "3", 2.0, None), "input_clip": (-1.0, math.nan, "1", None)},
                 "sums": {"crosses": (3, None, ["x"], [{"table": "colour*seen", "of": ["colour"]}],
                                      [{"table": "colour*seen", "of": ["colour", "tags"]}],
                                      [{"table": "colour*seen", "of": ["colour", "nope"]}], [{"of": ["colour", "seen"]}])}}
        every = {"learner": texts, "model": (3, None), "output": ("score", None), "computed_in": (7, None),
                 "form": ("other", None, []), "inputs": (3, None, ["x"])}
        for learner in forms:
            path, count = FOLDER / f"keys/{learner}/model.json", 0
            whole = path.read_text()
            places = [((), key, value) for key, values in (every | forms[learner]).items() for value in values]
            for i, each in enumerate(json.loads(whole)["inputs"]):
                places += [(("inputs", i), key, value) for key, values in rules[each["kind"]].items() for value in values]
            for at, key, value in places:
                for is_there in (True, False):
                    about = json.loads(whole)
                    where = about["inputs"][at[1]] if at else about
                    where[key] = value
                    if not is_there:
                        del where[key]
                    path.write_text(json.dumps(about))
                    words = re.escape(f"inputs[{at[1]}]." if at else "") + f"{key} must not be"
                    if is_there and isinstance(value, list) and value:
                        words = r"(inputs|crosses)\[0\]|of"  # a key of an object in the list is named
                    with self.subTest(learner=learner, at=at, key=key, value=value, is_there=is_there):
                        with self.assertRaisesRegex(tacit.TacitError, f"{learner}/model.json: ({words})"):
                            tacit.Model.load(FOLDER / "keys", learner)
                    count += 1
            self.assertGreater(count, 50)
            path.write_text(whole)
            tacit.Model.load(FOLDER / "keys", learner)


def tensor(shape, numbers, fortran_order="False", descr="<f4"):
    head = f"{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape!r}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{len(numbers)}f", *numbers)


def answered(body, status=200):
    """A client of a server that answers once, with that."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer():
        with listener, listener.accept()[0] as connection:
            asked = connection.makefile("rb")
            length = 0
            while (line := asked.readline().strip()):
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            asked.read(length)
            connection.sendall(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    threading.Thread(target=answer, daemon=True).start()
    return tacit.Client(f"http://127.0.0.1:{listener.getsockname()[1]}")


class Clients(unittest.TestCase):
    def test_other_answers_are_refused(self):
        scores = answered(b'{"scores":[0,1],"model":{"version":3}}').score([{}, {}])
        self.assertEqual((scores, scores.models), ([0, 1], [{"version": 3}]))
        for part in (b"[.5]", b"[.5,.6,.7]", b'["a",.5]', b"[NaN,.5]", b"[7,.5]", b"[-.1,.5]", b"[true,.5]", b"[null,.5]",
                     b".5", b"null", b"{}"):
            body = b'{"scores":%s,"model":{}}' % part.replace(b".", b"0.")
            with self.subTest(part), self.assertRaisesRegex(tacit.TacitError, "answered 200: scores must not be"):
                answered(body).score([{}, {}])
        for body in (b"", b"x", b"{}", b"[]", b"3", b'[["scores",[0.5,0.5]]]', b'{"scores":[0.5,0.5]}',
                     b'{"scores":[0.5,0.5],"model":3}', b"[" * 100000, b"\xff\xfe"):
            for ask in (lambda client: client.score([{}, {}]), tacit.Client.privacy, tacit.Client.recommend):
                with self.subTest(body[:40]), self.assertRaisesRegex(tacit.TacitError, "answered 200: "):
                    ask(answered(body))
        for body in (b"<html>", b'{"error":["x"]}', b"[" * 100000):
            with self.subTest(body[:40]), self.assertRaisesRegex(tacit.TacitError, "answered 500: ") as refused:
                answered(body, 500).privacy()
            self.assertEqual(refused.exception.status, 500)

    def test_requests_that_json_cannot_hold_are_refused(self):
        for more in ({"user": b"u1"}, {"sequence": {"i1"}}, {"among": [math.nan]}):
            with self.assertRaisesRegex(tacit.TacitError, f"/v1/recommend: {next(iter(more))} is no"):
                CLIENT.recommend(**more)
        for url in ("http://host/é", "http://a..b/", "http://host:x"):
            with self.assertRaisesRegex(tacit.TacitError, f"no daemon answers at {url}"):
                tacit.Client(url).privacy()

    def test_a_socket_answers_as_a_port_does(self):
        self.assertEqual(tacit.Client(DAEMON.operators).score(ROWS, "net"), CLIENT.score(ROWS, "net"))
        self.assertEqual(tacit.Client(DAEMON.operators + ":/").privacy()["head"], CLIENT.privacy()["head"])

    def test_many_rows_are_asked_in_parts(self):
        rows = ROWS * 5
        scores = CLIENT.score(rows, "sums")
        self.assertEqual([len(scores), len(scores.models)], [5000, 2])
        self.assertEqual(scores[:ASKED], scores[-ASKED:])
        self.assertEqual(CLIENT.score([], "sums"), [])

    def test_items_are_recommended(self):
        def asked():
            return CLIENT.recommend(sequence=["i1", "i2"], k=3, exclude=["i5"])["items"]

        def told():
            return json.loads(done("tacit", "query", "recommend", "--url", CLIENT.url, "--sequence", "i1,i2", "--k", "3",
                                   "--exclude", "i5", "--json"))["items"]
        # Recommendations follow a commit some time after it.
        DAEMON.until("both ask the same version", lambda: asked() == told())
        self.assertEqual(len(asked()), 3)

    def test_refusals_name_what_is_wrong(self):
        for ask, status, words in ((lambda: CLIENT.score([{}, {"colr": "c"}], "net"), 400, "answered 400: row 1: .*colr"),
                                   (lambda: CLIENT.score([{}], "nett"), 404, "answered 404: .*nett"),
                                   (lambda: CLIENT.score([{}]), 400, "net")):
            with self.assertRaisesRegex(tacit.TacitError, words) as refused:
                ask()
            self.assertEqual(refused.exception.status, status)
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # taken, without a listener
            nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
            for url in (nobody, f"unix:{FOLDER}/nobody"):
                with self.assertRaisesRegex(tacit.TacitError, f"no daemon answers at {url}: .*(refused|No such)"):
                    tacit.Client(url).privacy()
        for url in ("127.0.0.1:80", "ftp://host", "unix:", "http://"):
            with self.assertRaisesRegex(tacit.TacitError, f"'{url}' is not an address"):
                tacit.Client(url)


class Guarded(unittest.TestCase):
    """A server that wants tokens and certificates. The one certificate is everybody's, and its own authority."""

    @classmethod
    def setUpClass(cls):
        certificate, key = FOLDER / "certificate.pem", FOLDER / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key,
                        "-out", certificate], check=True, capture_output=True)
        line = done("tacit", "token", "new", "--role", "query", "--output", FOLDER / "token")
        (FOLDER / "callers").write_text(line)
        for secret in (FOLDER / "callers", key):
            secret.chmod(0o600)
        options = [word for option in ("callers=callers", "tls.certificate=certificate.pem", "tls.key=key.pem",
                                       "tls.client_ca=certificate.pem")
                   for word in ("--set", "serve." + option.replace("=", f"={FOLDER}/"))]
        cls.daemon = Daemon(FOLDER, "guarded", "--serve-only", "--checkpoint", RELEASE, *options)
        cls.addClassCleanup(cls.daemon.stop)
        cls.environment = {"TACIT_TOKEN_FILE": str(FOLDER / "token"), "TACIT_CA_FILE": str(certificate),
                           "TACIT_CLIENT_CERTIFICATE": str(certificate), "TACIT_CLIENT_KEY": str(key)}
        cls.client = tacit.Client(f"https://127.0.0.1:{cls.daemon.port()}/")

    def refusal(self, **changed):
        with unittest.mock.patch.dict(os.environ, self.environment | changed):
            with self.assertRaises(tacit.TacitError) as refused:
                self.client.privacy()
        return refused.exception

    def test_the_variables_of_the_commands_let_it_in(self):
        words = ("query", "recommend", "--url", self.client.url, "--sequence", "i1", "--json")
        told = run("tacit", *words, environment=self.environment)
        self.assertEqual(told.returncode, 0, told.stderr)
        with unittest.mock.patch.dict(os.environ, self.environment):
            self.assertEqual(self.client.recommend(sequence=["i1"])["items"], json.loads(told.stdout)["items"])
            self.assertEqual(self.client.score(ROWS, "net"), CLIENT.score(ROWS, "net"))

    def test_each_of_them_is_needed(self):
        self.assertEqual(self.refusal(TACIT_TOKEN_FILE="").status, 401)
        self.assertIn("CERTIFICATE_VERIFY_FAILED", str(self.refusal(TACIT_CA_FILE="")))
        self.assertIn("no daemon answers", str(self.refusal(TACIT_CLIENT_CERTIFICATE="")))
        for text in ("", "two words\n", "é\n"):
            (FOLDER / "other").write_text(text)
            self.assertRegex(str(self.refusal(TACIT_TOKEN_FILE=str(FOLDER / "other"))), "the first line of .*other is no token")


class Ledgers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = FOLDER / "ledger.json"
        done("tacit", "ledger", "export", "--url", DAEMON.operators, "--output", cls.place)

    def test_it_says_what_the_daemon_says(self):
        ledger, told = tacit.Ledger.read(self.place), CLIENT.privacy()
        self.assertEqual(ledger.head, told["head"])
        for each in told["learners"]:
            self.assertEqual({key: ledger.learners[each["learner"]][key] for key in ("epsilon", "delta", "unit", "steps")},
                             {key: each[key] for key in ("epsilon", "delta", "unit", "steps")})

    def test_dp_accounting_takes_its_events(self):
        sys.path.append(packages(self))
        self.addCleanup(sys.path.pop)
        import dp_accounting
        ledger = tacit.Ledger.read(self.place)
        for learner in ("sums", "net"):
            claim = ledger.learners[learner]
            anew = dp_accounting.pld.PLDAccountant().compose(ledger.event(learner)).get_epsilon(claim["delta"])
            self.assertAlmostEqual(anew, claim["epsilon"], delta=.01 * claim["epsilon"])
        doubled = dp_accounting.pld.PLDAccountant().compose(ledger.event("sums"), 2).get_epsilon(1e-6)
        self.assertGreater(doubled, 1.2 * ledger.learners["sums"]["epsilon"])

    def test_other_files_are_refused_by_name(self):
        done("tacit", "ledger", "export", "--url", DAEMON.operators, "--raw", "--output", FOLDER / "raw.json")
        for name in ("raw.json", "day.jsonl", "nothing.json"):
            with self.assertRaisesRegex(tacit.TacitError, f"{name} is not what `tacit ledger export` writes"):
                tacit.Ledger.read(FOLDER / name)
        for text in ("[]", "[" * 100000, '{"head":3,"learners":[]}', '{"head":"x","learners":3}', '{"head":"x","learners":[1]}',
                     '{"head":"x","learners":[{"event":{}}]}', '{"head":"x","learners":[{"learner":[],"event":{}}]}',
                     '{"head":"x","learners":[{"learner":"a","event":"zz"}]}'):
            (FOLDER / "other.json").write_text(text)
            with self.subTest(text[:60]), self.assertRaisesRegex(tacit.TacitError, "other.json is not what"):
                tacit.Ledger.read(FOLDER / "other.json")

    def test_other_events_are_refused_by_learner(self):
        with self.assertRaisesRegex(tacit.TacitError, "no event for 'nett' of .*'net'"):
            tacit.Ledger.read(self.place).event("nett")
        with unittest.mock.patch.dict(sys.modules, {"dp_accounting": None}):
            with self.assertRaisesRegex(tacit.TacitError, "no event for 'net' .*dp_accounting"):
                tacit.Ledger.read(self.place).event("net")
        sys.path.append(packages(self))
        self.addCleanup(sys.path.pop)
        for event in ({"class": 1}, {"module_name": "dp_accounting.dp_event", "class_name": "NoDpEvent"}, {"a": 1}):
            with self.subTest(event), self.assertRaisesRegex(tacit.TacitError, "no event for 'a'"):
                tacit.Ledger("x", {"a": {"event": event}}).event("a")


def build_wheel(packages_folder, folder):
    command = [sys.executable, "-c", "import sys; from flit_core import buildapi; print(buildapi.build_wheel(sys.argv[1]))", folder]
    built = subprocess.run(command, cwd=PACKAGE, env=os.environ | {"PYTHONPATH": packages_folder}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    return folder / built.stdout.strip()


class Wheel(unittest.TestCase):
    def test_it_is_small_typed_and_whole(self):
        wheel = build_wheel(packages(self), FOLDER)
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith("tacit/")]
            lines = sum(len(archive.read(name).splitlines()) for name in names)
        self.assertEqual(sorted(names), sorted(f"tacit/{path.name}" for path in (PACKAGE / "tacit").iterdir() if path.is_file()))
        self.assertIn("tacit/py.typed", names)
        self.assertLessEqual(lines, LINES_MOST)
        asked = subprocess.run([sys.executable, "-c", "import tacit; print(tacit.__file__)"], cwd=FOLDER,
                               env=os.environ | {"PYTHONPATH": str(wheel)}, capture_output=True, text=True)
        self.assertEqual(asked.stdout.strip(), f"{wheel}/tacit/__init__.py", asked.stderr)

    def mypy(self, *places):
        return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", FOLDER / "mypy", *places], cwd=FOLDER,
                              env=os.environ | {"PYTHONPATH": packages(self), "MYPYPATH": str(PACKAGE)},
                              capture_output=True, text=True)

    def test_types_are_strict(self):
        checked = self.mypy(PACKAGE / "tacit")
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        # A caller's mistake is seen by the types.
        (FOLDER / "caller.py").write_text('import tacit\n\ntacit.Client("unix:/x").score([{"price": b"1"}])\n')
        self.assertIn("has incompatible type", self.mypy(FOLDER / "caller.py").stdout)


def free_ports():
    """Two neighbours, below the ports that the system gives to clients, and those of the brokers of other tests."""
    while True:
        first = random.randrange(10_000, 15_000)
        try:
            for port in (first, first + 1):
                with socket.socket() as place:
                    place.bind(("127.0.0.1", port))
            return first, first + 1
        except OSError:
            continue


class Page(unittest.TestCase):
    """The page's commands run in their order, and the notebook before the last block, which ends the daemon."""

    def test_the_commands_and_the_notebook_run(self):
        folder = FOLDER / "page"
        folder.mkdir()
        environment = {"PYTHONPATH": f"{build_wheel(packages(self), folder)}:{packages(self)}", "HOME": str(folder),
                       "PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
        ports = dict(zip(("8980", "8981"), map(str, free_ports())))
        placed = [re.sub("127.0.0.1:(898[01])", lambda found: f"127.0.0.1:{ports[found.group(1)]}", path.read_text())
                  for path in (PAGE, NOTEBOOK)]
        (folder / "notebook.ipynb").write_text(placed[1])
        commands = readme_commands.parse(placed[0])
        last = next(i for i, command in enumerate(commands) if command.text.startswith("kill"))
        commands.insert(last, readme_commands.Command(0, f"{sys.executable} {RUN_NOTEBOOK} notebook.ipynb"))
        (folder / "commands.sh").write_text(readme_commands.script(commands))
        (folder / "logs").mkdir()
        ran = subprocess.run(["bash", "commands.sh", "logs"], cwd=folder, env=os.environ | environment,
                             capture_output=True, text=True)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        told = (folder / "told.txt").read_text()
        figure = {name: float(value) for name, value in re.findall(
            r"(difference|NE|AUC|prediction|ones|epsilon|by the daemon,|by the ledger,) ([\d.e-]+\d)", told)}
        self.assertLess(figure["difference"], 1e-6, told)
        self.assertLess(figure["NE"], .99, told)
        self.assertGreater(figure["AUC"], .6, told)
        self.assertAlmostEqual(figure["prediction"], figure["ones"], delta=.05, msg=told)
        by_daemon, by_ledger, anew = figure["epsilon"], figure["by the daemon,"], figure["by the ledger,"]
        self.assertEqual(by_daemon, by_ledger, told)
        self.assertAlmostEqual(anew, by_ledger, delta=.01 * by_ledger, msg=told)


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
