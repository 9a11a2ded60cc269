"""The events, the programs and the daemon that python_test.py asks."""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import time

TREE, PROGRAMS = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PATIENCE_S = 120
EVENTS, BATCH = 2000, 200


def features(rng):
    """Features of every kind, some of them missing."""
    found = {}
    if rng.random() < .75:
        found["seen"] = rng.randrange(3000) - 400
    if rng.random() < .75:
        found["price"] = rng.randrange(1000) / 256 - 1
    if rng.random() < .8:
        found["colour"] = f"c{rng.randrange(12)}"
    if rng.random() < .8:
        found["site"] = f"é-name-that-is-longer-than-a-block-of-thirty-two-{rng.randrange(40)}"
    if tags := [f"t{rng.randrange(9)}" for _ in range(rng.randrange(6))]:
        found["tags"] = tags
    return found


def write_world(folder):
    rng = random.Random(5)
    with open(folder / "day.jsonl", "w") as file:
        for i in range(EVENTS):
            row = features(rng)
            likely = (row.get("colour", "") < "c3") == (row.get("seen", 0) < 900)
            file.write(json.dumps({"user": f"u{rng.randrange(300)}", "item": f"i{rng.randrange(30)}", "features": row,
                                   "label": int(rng.random() < (.8 if likely else .1)), "timestamp_ms": 1000 + i}) + "\n")
    (folder / "items.dat").write_text("".join(f"i{i}\n" for i in range(30)))
    of = f"""
    participation: {{mode: once, batch: {BATCH}, max_participations: 10}}
    privacy: {{unit: user, epsilon: 40, delta: 1.0e-6}}"""
    of_events = of.replace("user", "event").replace(", max_participations: 10", "")
    (folder / "clicks.yaml").write_text(f"""
source: {{kind: log, files: "{folder}/day.jsonl", format: json}}
catalogue: {{file: "{folder}/items.dat"}}
schema:
  features:
    - {{name: seen, kind: dense}}
    - {{name: price, kind: dense, transform: identity}}
    - {{name: colour, kind: categorical, buckets: 64, dim: 4}}
    - {{name: tags, kind: multi_hot, buckets: 32, dim: 3, max_values: 3}}
    - {{name: site, kind: categorical, buckets: 20, dim: 5}}
store: {{path: "{folder}/store", witness: "{folder}/witness/store.witness", commit_interval_ms: 10}}
training: {{idle_priority: false}}
memory: {{total_bytes: 600MiB}}
learners:
  - id: net
    model: {{kind: pctr, hidden: [16, 8]}}
    mechanism: {{kind: dp-sgd}}
    optimizer: {{kind: adam, learning_rate: 0.02, ema: 0.5}}{of}
  - id: clipped
    model: {{kind: pctr, hidden: [16]}}
    mechanism: {{kind: forward, representation_clip: 1.5}}{of_events}
  - id: rounded
    model: {{kind: pctr, hidden: [16], compute: bf16}}
    mechanism: {{kind: dp-sgd}}{of}
  - id: sums
    model: {{kind: linear, crosses: [colour*seen]}}
    mechanism: {{kind: sums}}{of}
  - id: counts
    model: {{kind: transitions}}
    history: {{items: 10}}
    mechanism: {{kind: counts}}{of}
""")


def run(*words, environment=None, cwd=None):
    return subprocess.run([PROGRAMS / words[0], *map(str, words[1:])], capture_output=True, text=True, cwd=cwd,
                          env=os.environ | (environment or {}))


def done(*words):
    ended = run(*words)
    assert ended.returncode == 0, (words, ended.stdout, ended.stderr)
    return ended.stdout


class Daemon:
    """A tacitd with a public listener on TCP, and an operator's on a UNIX socket."""

    def __init__(self, folder, name, *options):
        self.log, self.operators = folder / f"{name}.log", f"unix:{folder}/{name}"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [PROGRAMS / "tacitd", "--config", folder / "clicks.yaml", "--set", "serve.listen=127.0.0.1:0", "--set",
                 f"serve.operator_listen={self.operators}", *options], stdout=subprocess.DEVNULL, stderr=log)
        self.until("it serves", lambda: self.port())

    def port(self):
        told = re.search(r"serving on 127\.0\.0\.1:(\d+)", self.log.read_text())
        return told and int(told.group(1))

    def until(self, what, holds):
        end = time.monotonic() + PATIENCE_S
        while not holds():
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"not so: {what}; it said:\n{self.log.read_text()}")
            time.sleep(.05)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
