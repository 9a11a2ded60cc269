"""Random schemas, values and evolved readers of Avro: what Tacit reads is what fastavro reads.

avro_test.py TREE READER [ROUNDS [SEED]]. READER is avro_reader. fastavro comes by `tools/pypi avro fetch`; where it is
missing the test is left out, and fails where TACIT_REQUIRE holds avro. A failure prints its seed and round.
"""

import decimal
import io
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

TREE, READER = (pathlib.Path(word) for word in sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 200
SEED = int(sys.argv[4]) if len(sys.argv) > 4 else random.SystemRandom().randrange(1 << 32)
CODECS = ("null", "deflate", "zstandard")

PRIMITIVES = ("boolean", "int", "long", "float", "double", "bytes", "string")
WIDER = {"int": ("long", "float", "double"), "long": ("float", "double"), "float": ("double",),
         "string": ("bytes",), "bytes": ("string",)}
LOGICAL = (("int", {"logicalType": "date"}), ("int", {"logicalType": "time-millis"}),
           ("long", {"logicalType": "timestamp-millis"}), ("long", {"logicalType": "timestamp-micros"}),
           ("long", {"logicalType": "local-timestamp-millis"}), ("long", {"logicalType": "time-micros"}),
           ("bytes", {"logicalType": "decimal", "precision": 12, "scale": 4}))


class Maker:
    """Makes schemas as trees: (kind, ...) with what the kind has."""

    def __init__(self, chance):
        self.chance, self.names = chance, 0
        self.named = []

    def name(self, letter):
        self.names += 1
        space = self.chance.choice(("a.", "a.b."))
        return f"{space}{letter}{self.names}"

    def type(self, depth):
        kinds = ["primitive"] * 5 + ["logical", "enum", "fixed"]
        if depth < 3:
            kinds += ["array", "map", "union", "union", "record"]
        if self.named:
            kinds.append("again")
        kind = self.chance.choice(kinds)
        if kind == "primitive":
            return ("primitive", self.chance.choice(PRIMITIVES), {})
        if kind == "logical":
            return ("primitive", *self.chance.choice(LOGICAL))
        if kind == "again":
            return self.chance.choice(self.named)
        if kind in ("enum", "fixed"):
            made = (kind, self.name(kind[0].upper()),
                    [f"s{i}" for i in range(self.chance.randint(1, 4))] if kind == "enum"
                    else self.chance.randint(1, 5))
            self.named.append(made)
            return made
        if kind in ("array", "map"):
            return (kind, self.type(depth + 1))
        if kind == "union":
            return ("union", [("primitive", "null", {}), self.other_than_union(depth + 1)])
        return self.record(depth + 1)

    def other_than_union(self, depth):
        while True:
            made = self.type(depth)
            if made[0] != "union":
                return made

    def record(self, depth):
        fields = [(f"f{i}", self.type(depth), {}) for i in range(self.chance.randint(1, 5))]
        if all(self.is_empty(made) for _, made, _ in fields):
            fields.append(("n", ("primitive", "int", {}), {}))
        return ("record", self.name("R"), fields)

    @staticmethod
    def is_empty(made):
        return made[0] == "primitive" and made[1] == "null"

    def evolved(self, made, wraps=True):
        """A type that reads values of another."""
        kind, roll = made[0], self.chance.random()
        if kind == "primitive":
            if not made[2] and made[1] in WIDER and roll < 0.4:
                made = ("primitive", self.chance.choice(WIDER[made[1]]), {})
        elif kind in ("array", "map"):
            made = (kind, self.evolved(made[1]))
        elif kind == "union":
            made = (kind, [made[1][0], self.evolved(made[1][1], wraps=False)])
        elif kind == "record":
            made = (kind, made[1], self.evolved_fields(made[2]))
        # fastavro does not read a type by its name where the reader declares it in a union.
        if wraps and kind not in ("union", "enum", "fixed") and not self.is_empty(made) and roll > 0.8:
            made = ("union", [("primitive", "null", {}), made])
        return made

    def evolved_fields(self, fields):
        evolved = []
        for name, made, _ in fields:
            roll = self.chance.random()
            if roll < 0.15:
                continue
            if roll < 0.3:
                evolved.append((name + "_new", self.evolved(made), {"aliases": ["other", name]}))
            else:
                evolved.append((name, self.evolved(made), {}))
        if not evolved or self.chance.random() < 0.4:
            made = self.defaulted()
            evolved.append(("added", made, {"default": self.default(made)}))
        self.chance.shuffle(evolved)
        return evolved

    def defaulted(self):
        made = ("primitive", self.chance.choice(PRIMITIVES), {})
        shape = self.chance.randrange(5)
        return (made, ("array", made), ("map", made), ("union", [("primitive", "null", {}), made]),
                ("union", [made, ("primitive", "null", {})]))[shape]

    def default(self, made):
        if made[0] == "array":
            return [self.default(made[1]) for _ in range(self.chance.randint(0, 3))]
        if made[0] == "map":
            return {f"k{i}": self.default(made[1]) for i in range(self.chance.randint(0, 3))}
        if made[0] == "union":
            return self.default(made[1][0])
        return {"null": None, "boolean": True, "int": -7, "long": 1 << 40, "float": 0.5, "double": -2.25,
                "bytes": "by", "string": "té\"x"}[made[1]]

    def value(self, made):
        kind, chance = made[0], self.chance
        if kind == "primitive":
            return self.primitive(made)
        if kind == "enum":
            return chance.choice(made[2])
        if kind == "fixed":
            return bytes(chance.randrange(128) for _ in range(made[2]))
        if kind == "array":
            return [self.value(made[1]) for _ in range(chance.choice((0, 1, 2, 5)))]
        if kind == "map":
            return {f"k{i}é": self.value(made[1]) for i in range(chance.choice((0, 1, 3)))}
        if kind == "union":
            return self.value(chance.choice(made[1]))
        return {name: self.value(of) for name, of, _ in made[2]}

    def primitive(self, made):
        chance, bits = self.chance, self.chance.choice((3, 8, 20, 31))
        of = made[1]
        if made[2].get("logicalType") == "decimal":
            return chance.randint(-10**9, 10**9).to_bytes(5, "big", signed=True)
        if made[2].get("logicalType") == "date":
            return chance.randint(-100_000, 100_000)
        if of == "null":
            return None
        if of == "boolean":
            return chance.random() < 0.5
        if of == "int":
            return chance.randint(-(1 << bits), (1 << bits) - 1)
        if of == "long":
            return chance.choice((1, 1 << 32)) * chance.randint(-(1 << bits), (1 << bits) - 1)
        if of == "float":
            return struct.unpack("<f", struct.pack("<f", chance.uniform(-1e6, 1e6)))[0]
        if of == "double":
            return chance.uniform(-1, 1) * 10.0 ** chance.randint(-30, 30)
        text = "".join(chance.choice("ab\"\\\n\x01 7") for _ in range(chance.randrange(12)))
        return text.encode() if of == "bytes" else text + chance.choice(("", "é", "日"))


def schema_of(made, seen):
    """A tree as JSON; a type with a name is declared once."""
    kind = made[0]
    if kind == "primitive":
        return {"type": made[1], **made[2]} if made[2] else made[1]
    if kind in ("array", "map"):
        return {"type": kind, "items" if kind == "array" else "values": schema_of(made[1], seen)}
    if kind == "union":
        return [schema_of(one, seen) for one in made[1]]
    # A name without a namespace would be of the one around it.
    space, _, name = made[1].rpartition(".")
    if made[1] in seen:
        return made[1]
    seen.add(made[1])
    declared = {"type": kind, "name": name, "namespace": space}
    if kind == "enum":
        declared["symbols"] = made[2]
    elif kind == "fixed":
        declared["size"] = made[2]
    else:
        declared["fields"] = [{"name": field, "type": schema_of(of, seen), **more} for field, of, more in made[2]]
    return declared


def same(ours, theirs):
    if isinstance(theirs, dict):
        return isinstance(ours, dict) and ours.keys() == theirs.keys() and all(same(ours[k], theirs[k]) for k in theirs)
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(theirs, bytes):
        theirs = theirs.decode()
    if isinstance(theirs, bool) or theirs is None or isinstance(theirs, str):
        return type(ours) is type(theirs) and ours == theirs
    if isinstance(theirs, decimal.Decimal):
        return decimal.Decimal(ours) == theirs
    if isinstance(theirs, float):
        ours = float(ours)
        single = abs(theirs) < 3e38 and struct.unpack("<f", struct.pack("<f", theirs))[0] == theirs
        return ours == theirs or (single and struct.unpack("<f", struct.pack("<f", ours))[0] == theirs)
    if hasattr(theirs, "isoformat"):
        return ours == theirs.isoformat()
    return isinstance(ours, (int, str)) and int(ours) == theirs


class Tacit:
    def __init__(self):
        self.process = subprocess.Popen([READER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self, *words):
        line = " ".join(word if isinstance(word, str) else word.hex() or "-" for word in words)
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        records = []
        while True:
            answer = self.process.stdout.readline()
            if not answer:
                raise SystemExit(f"avro_reader has ended: {line}")
            if answer == "end\n":
                return records
            if answer.startswith("error "):
                return answer.strip()
            try:
                records.append(json.loads(answer, parse_float=decimal.Decimal))
            except ValueError as error:
                raise SystemExit(f"avro_reader says {answer!r}, which is no JSON: {error}") from error


def check(tacit, folder, number):
    chance = random.Random(f"{SEED}:{number}")
    maker = Maker(chance)
    tree = maker.record(0)
    writer = schema_of(tree, set())
    reader = schema_of(maker.evolved(tree, wraps=False), set()) if number % 4 else None
    values = [maker.value(tree) for _ in range(chance.choice((1, 3, 30)))]
    writer_text, reader_text = (json.dumps(schema).encode() if schema else b"" for schema in (writer, reader))
    parsed_writer = fastavro.parse_schema(writer)
    parsed_reader = fastavro.parse_schema(reader) if reader else None

    def demand(ours, theirs, what):
        if isinstance(ours, str) or len(ours) != len(theirs) or not all(map(same, ours, theirs)):
            raise SystemExit(f"seed {SEED}, round {number}, {what}: Tacit reads {ours}, fastavro {theirs}\n"
                             f"writer {writer_text.decode()}\nreader {reader_text.decode()}")

    for value in values[:3]:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed_writer, value)
        theirs = [fastavro.schemaless_reader(io.BytesIO(out.getvalue()), parsed_writer, parsed_reader)]
        for how in ("bare", "framed"):
            demand(tacit.read(how, writer_text, reader_text, out.getvalue()), theirs, how)
        # Cut short, it is no record.
        cut = out.getvalue()[:chance.randrange(len(out.getvalue()))]
        ours = tacit.read("bare", writer_text, b"", cut)
        if not isinstance(ours, str) or "truncated or damaged" not in ours:
            raise SystemExit(f"seed {SEED}, round {number}: of {len(cut)} bytes Tacit reads {ours}")
    codec = CODECS[number % len(CODECS)]
    path = folder / f"{codec}.avro"
    with open(path, "wb") as out:
        fastavro.writer(out, parsed_writer, values, codec=codec, sync_interval=chance.choice((1, 100, 16000)))
    with open(path, "rb") as file:
        theirs = list(fastavro.reader(file, reader_schema=parsed_reader))
    demand(tacit.read("file", reader_text, os.fsencode(path)), theirs, codec)


def main():
    # The other logical types are whole numbers here, as they are written.
    for logical in list(fastavro.read.LOGICAL_READERS):
        if not logical.endswith(("-date", "-decimal")):
            del fastavro.read.LOGICAL_READERS[logical]
    tacit = Tacit()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS):
            check(tacit, pathlib.Path(folder), number)
    print(f"{ROUNDS} schemas, seed {SEED}: Tacit reads what fastavro reads")


if __name__ == "__main__":
    ready = subprocess.run([TREE / "tools/pypi", "avro", "ready"], capture_output=True, text=True)
    FOUND = ready.stdout.strip()
    if ready.returncode != 0:
        print(f"left out: {FOUND}")
        sys.exit(1 if "avro" in os.environ.get("TACIT_REQUIRE", "").split(",") else 0)
    sys.path.insert(0, FOUND)
    import fastavro
    import fastavro.read
    main()
