# A small shop's stream, what is known of it by making it, and daemons that learn from it.
import http.client
import itertools
import json
import os
import random
import re
import signal
import subprocess
import time

PATIENCE = 60
FILES = 3
LINES = 1500       # of a file, dead letters among them
BATCH = 100        # offsets of a step of the learner of users
ALLOWANCE = 40     # steps of a user, ever
BAD = {"label": 12, "syntax": 7, "user": 3}  # of each file
BEGIN_MS = 1763640000000


class Stream:
    """Lines of JSON in files, and for each record what a reader can know of it."""

    def __init__(self, folder, seed=7):
        rng = random.Random(seed)
        self.folder = folder
        self.records = []  # per file: None for a dead letter, else (user, label, device)
        for day in range(FILES):
            bad = {}
            places = rng.sample(range(LINES), sum(BAD.values()))
            for part, count in BAD.items():
                for _ in range(count):
                    bad[places.pop()] = part
            records = []
            with open(f"{folder}/day-{day}.jsonl", "w") as file:
                for line in range(LINES):
                    # Few users come often, many seldom.
                    user = f"u{int(90 * rng.random() ** 3)}"
                    device = rng.choice(["phone", "desk", "tablet"])
                    p = {"phone": .5, "desk": .15, "tablet": .3}[device]
                    label = int(rng.random() < p)
                    record = {"user": user, "label": label,
                              "timestamp_ms": BEGIN_MS + (day * LINES + line) * 1000,
                              "features": {"price": round(rng.random() * 9, 2), "device": device}}
                    part = bad.get(line)
                    if part == "label":
                        record["label"] = "perhaps"
                    elif part == "user":
                        del record["user"]
                    text = json.dumps(record)
                    file.write((text[:20] if part == "syntax" else text) + "\n")
                    records.append(None if part else (user, label, device))
            self.records.append(records)

    def file(self, day):
        return f"{self.folder}/day-{day}.jsonl"

    def good(self, day):
        return [record for record in self.records[day] if record]

    def batches(self):
        for records in self.records:
            for begin in range(0, LINES, BATCH):
                yield [record for record in records[begin:begin + BATCH] if record]

    def uses(self):
        """The steps that each user was in, by the rule of a user's allowance."""
        used = {}
        for batch in self.batches():
            for user in {user for user, _, _ in batch}:
                used[user] = min(ALLOWANCE, used.get(user, 0) + 1)
        return used


SUMS = """
  - id: sums
    model: {kind: linear}
    mechanism: {kind: sums}
    participation: {mode: once, batch: 100000}
    privacy: {unit: event, epsilon: 8, delta: 1.0e-6}
"""
USERS = f"""
  - id: users
    model: {{kind: pctr, hidden: [8]}}
    mechanism: {{kind: adafest, threshold: 1.0, sigma_ratio: 5}}
    participation: {{mode: once, batch: {BATCH}, max_participations: {ALLOWANCE}}}
    privacy: {{unit: user, epsilon: 8, delta: 1.0e-6}}
    optimizer: {{kind: adam, learning_rate: 0.002}}
"""


def write_config(path, files, store, learners, more=""):
    os.makedirs(store + "-witness", exist_ok=True)
    with open(path, "w") as file:
        file.write(f"""
source: {{kind: log, format: json, files: {json.dumps(files)}}}
schema:
  features:
    - {{name: price, kind: dense}}
    - {{name: device, kind: categorical, buckets: 10001}}
learners:{learners}
store: {{path: "{store}", witness: "{store}-witness/witness", commit_interval_ms: 15}}
serve: {{listen: ""}}
log: {{level: warning}}
training: {{idle_priority: false}}
dead_letters: {{path: "{store}.dead"}}
{more}""")
    return path


class Daemon:
    """A tacitd with an operator's listener of its own."""

    numbers = itertools.count()

    def __init__(self, programs, config, *options):
        self.port = None
        # Daemons of one configuration may run side by side.
        self.log = f"{config}.{next(Daemon.numbers)}.log"
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [f"{programs}/tacitd", "--config", config, "--set",
                 "serve.operator_listen=127.0.0.1:0", "--set", "log.level=info", *options],
                stdout=subprocess.DEVNULL, stderr=log)
        self.until(self.has_port, "the daemon says where it serves")
        self.until(lambda: self.get("/healthz")[0] == 200, "the daemon answers")

    def has_port(self):
        with open(self.log) as log:
            told = re.search(r"serving on 127\.0\.0\.1:(\d+)\n", log.read())
        self.port = int(told.group(1)) if told else None
        return told is not None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def get(self, path, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read(), dict(answer.getheaders())
        except OSError:
            return 0, b"", {}
        finally:
            connection.close()

    def post(self, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("POST", path, body.encode())
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status == 200, text
        return json.loads(text)

    def json(self, path):
        status, body, _ = self.get(path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def until(self, holds, what):
        end = time.monotonic() + PATIENCE
        while not holds():
            if self.process.poll() is not None or time.monotonic() > end:
                with open(self.log) as log:
                    raise AssertionError(f"not so: {what}; it said:\n" + log.read())
            time.sleep(.05)

    def until_all_is_learnt(self):
        self.until(lambda: self.json("/v1/dashboard")["state"]["activity"].startswith("at the end"),
                   "all is learnt")

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


def run(programs, *command):
    done = subprocess.run([f"{programs}/{command[0]}", *command[1:]], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.returncode, done.stdout, done.stderr)
    return done.stdout


def learn_in_phases(programs, folder, learners, more):
    """Learns file after file, a second and more apart, so that the ledger has a history. The last
    file is left to a daemon that the caller starts. Returns the stream and the configuration."""
    stream = Stream(folder)
    for day in range(FILES - 1):
        config = write_config(f"{folder}/phase-{day}.yaml", [stream.file(d) for d in range(day + 1)],
                              f"{folder}/store", learners, more)
        run(programs, "tacitd", "--config", config, "--until-end")
        time.sleep(1.2)  # the ledger's forecast wants a history of a second
    config = write_config(f"{folder}/shop.yaml", [stream.file(d) for d in range(FILES)],
                          f"{folder}/store", learners, more)
    return stream, config
