"""From the file of a stream to a judged model, as somebody does who sees Tacit for the first time.

first_hour_test.py TREE PROGRAMS [--records N] [--seed N] [TEST...]. The streams of streams.py have traps and a known
truth. Each is inspected, its proposal gets the words of the label where they are left empty, and nothing else is
edited. Then it is measured on records held out, learnt, and asked. `Topics` needs `tools/kafka fetch`: without it
that part is left out, and fails where TACIT_REQUIRE holds kafka.
"""

import argparse
import collections
import gzip
import json
import os
import pathlib
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

import streams

parser = argparse.ArgumentParser()
parser.add_argument("tree", type=pathlib.Path)
parser.add_argument("programs", type=pathlib.Path)
parser.add_argument("--records", type=int, default=30_000)
parser.add_argument("--seed", type=int, default=1)
ASKED, TESTS = parser.parse_known_args()
ASKED.tree, ASKED.programs = ASKED.tree.resolve(), ASKED.programs.resolve()

HELD_OUT = f"{100 * streams.HELD_OUT:.0f}%"
ENOUGH_RECORDS = 10_000  # of a period
DEVIATIONS_KNOWN = 10  # labels of a period are few below this multiple of the noise
DEVIATIONS = 3  # of a sample, by which a figure may miss the truth
PATIENCE_S = 600  # for a command that hangs


def spent():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Stream:
    """One stream, and the commands of the first hour."""

    def __init__(self, name, unit):
        self.name, self.unit = name, unit
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-"))
        self.truth = streams.STREAMS[name](self.folder, ASKED.seed, ASKED.records)
        self.config = self.folder / "proposed.yaml"
        self.began, self.spent_before = time.monotonic(), spent()

    def done(self, program, *words, status=0):
        """Runs one of the programs, and returns all that it says."""
        return self.run(ASKED.programs / program, *words, status=status)

    def run(self, *words, status=0):
        # A busy machine leaves idle threads no time.
        ended = subprocess.run([*map(str, words)], capture_output=True, text=True, cwd=self.folder, timeout=PATIENCE_S,
                               env=os.environ | {"TACIT_TRAINING_IDLE_PRIORITY": "false",
                                                 "PATH": f"{ASKED.programs}:{os.environ['PATH']}"})
        said = ended.stdout + ended.stderr
        assert ended.returncode == status, f"{words} ended with {ended.returncode}:\n{said}"
        return ended.stdout if "--json" in words else said

    def inspect(self, *options, files=None, items=True, epsilon=8):
        """Looks at the stream under a promise, and returns the report. The proposal is at `config`."""
        self.config.unlink(missing_ok=True)
        if items and self.truth.items:
            options += ("--items", self.truth.items)
        return self.done("tacit", "inspect", *(files or self.truth.files), "--unit", self.unit, "--epsilon", epsilon,
                         "--delta", "1e-6", "--mode", "once", *options, "--output", self.config)

    def keys(self):
        """The lines of the proposal without its comments."""
        return [line for line in re.sub(r" *#.*", "", self.config.read_text()).splitlines() if line]

    def fill_in(self):
        """Writes a number behind each word of the label that the proposal left empty."""
        proposal = self.config.read_text()
        for word in self.truth.words:
            proposal, found = re.subn(rf'^( *"?{word}"?:)$', rf"\1 {int(word == self.truth.positive)}", proposal,
                                      flags=re.MULTILINE)
            assert found == 1, f"{word} is to be filled in:\n{proposal}"
        self.config.write_text(proposal)

    def evaluate(self):
        """Learns all but the last records and predicts these; the figures by learner."""
        found = json.loads(self.done("tacit", "evaluate", "--config", self.config, "--held-out", HELD_OUT,
                                     "--without-privacy", "--json"))
        return {learner["id"]: learner for learner in found["learners"]}

    def learn(self, *options):
        return self.done("tacitd", "--config", self.config, "--until-end", "--set",
                         f"serve.listen=unix:{self.folder}/socket", *options)

    def ask(self, command, *words):
        return json.loads(self.done("tacit", "query", command, "--checkpoint", f"{self.folder}/proposed-data/store",
                                    "--config", self.config, *words, "--json"))

    def close(self):
        """Says what all commands took, and removes the stream."""
        print(f"  {self.name}: {self.truth.records} records, {spent() - self.spent_before:.1f} s of processors, "
              f"{time.monotonic() - self.began:.1f} s by the clock", flush=True)
        shutil.rmtree(self.folder)


def held_out(learner, without_privacy):
    """The days that were held out."""
    days = learner["days_without_privacy" if without_privacy else "days"]
    return [day for day in days if day["held_out"]]


def warnings(report):
    return [line for line in report.splitlines() if line.startswith("WARNING: ")]


class Judge(unittest.TestCase):
    """Holds a stream's words and figures against its truth."""

    def open(self, name, unit):
        stream = Stream(name, unit)
        self.addCleanup(lambda: shutil.rmtree(stream.folder, ignore_errors=True))
        return stream

    def judge_report(self, stream, report):
        """Each trap is named, and clean columns are not."""
        truth, told = stream.truth, warnings(report)
        for leak in truth.leaks:
            why = f'"{leak}" is left out: it is filled in where the label '
            self.assertTrue(any(why in line for line in told), report)
        self.assertEqual(sum("is left out" in line for line in told), len(truth.leaks), report)
        for text in truth.nobody:
            self.assertTrue(any(f'"{text}"' in line and "to be none" in line for line in told), report)
        self.assertEqual(any("to be none" in line for line in told), bool(truth.nobody), report)
        self.assertEqual(sum("one user has" in line for line in told), truth.heavy, report)
        for column in truth.clean:
            self.assertFalse(any(f'"{column}"' in line for line in told), f"{column}:\n{report}")
        for column in truth.ids:
            part = re.search(rf"^{column} .* (\S+) *$", report, re.MULTILINE)
            self.assertIn(part and part.group(1), ("item", "categorical"), report)
        self.judge_labels(truth, report)

    def judge_labels(self, truth, report):
        """Labels are called few where they are few beside the noise, or for a figure, and nowhere else."""
        noise = re.search(r"^noise +at epsilon \S+, (\S+) times what a (\w+) .* at most ([\d,]+) records", report,
                          re.MULTILINE)
        self.assertTrue(noise, report)
        first = min(truth.records, int(noise.group(3).replace(",", "")))
        if noise.group(2) == "record":  # the first period of events is shorter
            first = min(first, ENOUGH_RECORDS)
        labels, enough = truth.ones / truth.records * first, DEVIATIONS_KNOWN * float(noise.group(1))
        told = any("in the first period are few" in line for line in warnings(report))
        if not .9 < labels / enough < 1.1:  # the report's figures are rounded
            self.assertEqual(told, labels < enough, report)
        known = 1.96 / (12 * .2 * truth.ones) ** .5
        self.assertEqual(any("tells an AUC to" in line for line in warnings(report)), known > .05, report)
        return told

    def judge_guess(self, stream, report):
        """The command at the report's end says what was guessed; nothing is a guess then, or is proposed otherwise."""
        self.assertIn("GUESSED", report)
        guessed = stream.keys()
        said = stream.run("bash", "-c", report.splitlines()[-1])
        # No option says where a scale is divided.
        self.assertNotIn("GUESSED", said.replace("it is a scale, and GUESSED: ", ""))
        self.assertEqual(stream.keys(), guessed)

    def judge_open_label(self, stream, report):
        """tacitd asks for the words of a guessed label, and charges nothing before it has them."""
        self.judge_guess(stream, report)
        self.assertIn("to be filled in by a person: source.csv.label_values", report)
        self.assertIn("label_values", stream.done("tacitd", "--config", stream.config, "--until-end", status=2))
        self.assertFalse((stream.folder / "proposed-data").exists())
        stream.fill_in()

    def judge_figure(self, stream, name, figure, true, deviation, distance, beside=""):
        """No model is better than the truth, and this one is near it."""
        print(f"  {stream.name} {name} {figure:.4f}, by the true odds {true:.4f} +- {deviation:.4f}{beside}",
              flush=True)
        self.assertLessEqual(figure, true + DEVIATIONS * deviation, "better than the truth: a leak")
        self.assertGreaterEqual(figure, true - distance - DEVIATIONS * deviation)

    def judge_auc(self, stream, learner, distance):
        for without_privacy in (False, True):
            days = held_out(learner, without_privacy)
            auc = sum(day["auc"] * day["events"] for day in days) / sum(day["events"] for day in days)
            self.judge_figure(stream, "AUC without privacy" if without_privacy else "AUC", auc, stream.truth.auc,
                              stream.truth.deviation, distance)

    def judge_next(self, stream, learner, distance):
        """The same of next items; and a day on which nobody was asked says so."""
        truth = stream.truth
        self.assertEqual(learner["days"][0]["asked"], 0)
        self.assertGreater(learner["days"][0]["without_model"], 0)
        for without_privacy in (False, True):
            (day,) = held_out(learner, without_privacy)
            self.assertEqual(day["asked"], truth.next_asked)
            hit = day["model"]["hits"] / day["asked"]
            deviation = (truth.next_hit * (1 - truth.next_hit) / day["asked"]) ** .5
            self.judge_figure(stream, "HIT@10 without privacy" if without_privacy else "HIT@10", hit, truth.next_hit,
                              deviation, distance, f"; popularity {day['popularity']['hits'] / day['asked']:.4f}")

    def judge_model(self, stream, distance, distance_of_next=None):
        """Judges figures of the records held out, and answers of a model of all records."""
        learners = stream.evaluate()
        self.judge_auc(stream, learners["clicks"], distance)
        self.assertEqual("next" in learners, distance_of_next is not None)
        if distance_of_next:
            self.judge_next(stream, learners["next"], distance_of_next)
        stream.learn()
        self.judge_answers(stream)
        if distance_of_next:
            self.judge_recommended(stream)

    def judge_answers(self, stream):
        """The records themselves are questions: by row, by file, and with the same answers."""
        rows = stream.truth.rows
        by_row = stream.ask("score", "--learner", "clicks", *(word for row in rows[:3] for word in ("--row", row)))
        asked = stream.folder / "asked"
        asked.write_text("".join(row + "\n" for row in rows))
        by_file = stream.ask("score", "--learner", "clicks", "--tsv", asked, "--count", len(rows))
        self.assertEqual(len(by_file["scores"]), len(rows))
        self.assertEqual(by_row["scores"], by_file["scores"][:3])
        self.assertGreater(len(set(by_file["scores"])), 1)
        self.assertTrue(all(0 < score < 1 for score in by_file["scores"]))

    def judge_recommended(self, stream):
        listed = pathlib.Path(stream.truth.items).read_text().split()
        answer = stream.ask("recommend", "--sequence", listed[3])
        items = [item["id"] for item in answer["items"]]
        self.assertEqual(len(set(items)), 10)
        self.assertLessEqual(set(items), set(listed))

    def judge_allowance(self, stream, user_of):
        """A proposal from a third of the records has an allowance that the whole uses up; log and table say so."""
        truth = stream.truth
        stream.inspect("--rows", truth.records // 3)
        stream.fill_in()
        proposal = stream.config.read_text()
        period, allowed = (int(re.search(rf"^ +{key}: (\d+)$", proposal, re.MULTILINE).group(1))
                           for key in ("batch", "max_participations"))
        learnt, periods = 0, collections.defaultdict(set)
        with open(truth.files[0]) as file:
            # A period counts lines, and a header is one.
            for number, line in enumerate(file):
                who = user_of(line)
                if number == 0 or not who:
                    continue
                mine = periods[who]
                if number // period in mine or len(mine) < allowed:
                    mine.add(number // period)
                    learnt += 1
        said = stream.done("tacitd", "--config", stream.config, "--until-end", "--set",
                           f"serve.listen=unix:{stream.folder}/socket", "--set", f"store.path={stream.folder}/other",
                           "--set", f"store.witness={stream.folder}/other-witness/witness")
        row = re.search(rf"^{re.escape(pathlib.Path(truth.files[0]).name)} +([\d,]+) ", said, re.MULTILINE)
        self.assertEqual(int(row.group(1).replace(",", "")), learnt, said)
        self.assertRegex(said, r"learner 'clicks': \d+ % of the last [\d,]+ users and \d+ % of their [\d,]+ records "
                               r"could not be learnt from: allowances")


class Files(Judge):
    def test_ratings(self):
        stream = self.open("ratings", unit="user")
        # A user's records are few: noise hides what a small part of them has to say.
        head = stream.folder / "head.csv"
        head.write_text("".join(pathlib.Path(stream.truth.files[0]).read_text().splitlines(keepends=True)[:2000]))
        self.assertIn("noise hides nearly all there is to learn", stream.inspect(files=[head]))
        self.judge_allowance(stream, lambda line: line.split(",")[0])
        report = stream.inspect()
        self.judge_report(stream, report)
        self.judge_guess(stream, report)
        self.assertNotIn("noise hides", report)
        self.assertIn("which name no zone", report)
        self.assertIn("a model of the next item is proposed beside the model of labels", report)
        self.judge_model(stream, distance=.04, distance_of_next=.06)
        stream.close()

    def test_sessions(self):
        stream = self.open("sessions", unit="user")
        report = stream.inspect()
        self.judge_report(stream, report)
        self.assertIn("which name no zone", report)
        self.assertIn("a model of the next item is proposed beside the model of labels", report)
        self.judge_open_label(stream, report)
        # Few sales of few people are too few for pairs of items: the figure says so.
        self.judge_model(stream, distance=.06, distance_of_next=.5)
        # Without a list of items the proposal says why there is no model of them.
        self.assertIn("it needs the public list of items, --items FILE", stream.inspect(items=False))
        self.judge_few_labels(stream)
        stream.close()

    def test_ads(self):
        stream = self.open("ads", unit="event")
        report = stream.inspect()
        self.judge_report(stream, report)
        self.judge_guess(stream, report)
        self.assertNotIn("which name no zone", report)
        self.assertNotIn("next items", report)
        self.judge_model(stream, distance=.12)
        self.judge_few_labels(stream)
        stream.close()

    def judge_few_labels(self, stream):
        """At a small epsilon the same labels are few."""
        few = [self.judge_labels(stream.truth, stream.inspect(epsilon=epsilon)) for epsilon in (8, 1, .05)]
        self.assertTrue(few[-1])
        self.assertEqual(few, sorted(few))

    def test_service_log(self):
        stream = self.open("service_log", unit="user")
        self.judge_allowance(stream, lambda line: line.split(";")[1].replace("guest", ""))
        report = stream.inspect()
        self.judge_report(stream, report)
        self.judge_open_label(stream, report)
        self.judge_model(stream, distance=.04)
        stream.close()

    def test_days(self):
        stream = self.open("days", unit="event")
        label = re.search(r"^label .*GUESSED.*", stream.inspect(), re.MULTILINE)
        for rival in ("sold_out", "promoted"):
            self.assertIn(f"/{rival}", label.group(), "the label, or a rival")
        report = stream.inspect("--label", stream.truth.label)
        self.judge_guess(stream, report)
        self.judge_report(stream, report)
        self.assertIn("which name no zone", report)
        proposed = int(re.search(r"^ +step_files: (\d+)$", stream.config.read_text(), re.MULTILINE).group(1))
        with gzip.open(stream.truth.files[0]) as file:
            first = len(file.readlines())
        for step_files in (proposed, 1):
            said = stream.done("tacitd", "--config", stream.config, "--check-config", "--set",
                               f"learners.0.participation.step_files={step_files}")
            self.assertEqual("by the first file, learner 'clicks'" in said, first * step_files < ENOUGH_RECORDS, said)
        self.judge_model(stream, distance=.04)
        stream.close()


class Broker:
    """An Apache Kafka of this test's own, which ends with it."""

    def __init__(self, folder):
        self.options = ("--data", folder, "--while", os.getpid(), "--port", self.free_ports())
        self.bootstrap = f"127.0.0.1:{self.options[-1]}"
        self.tool("start")

    @staticmethod
    def free_ports():
        """Two neighbours, below the ports that the system gives to clients."""
        while True:
            first = random.randrange(15_000, 31_000)
            try:
                for port in (first, first + 1):
                    with socket.socket() as one:
                        one.bind(("127.0.0.1", port))
                return first
            except OSError:
                continue

    def tool(self, *words):
        ended = subprocess.run([ASKED.tree / "tools/kafka", *map(str, (*words, *self.options))], capture_output=True,
                               text=True)
        assert ended.returncode == 0, ended.stdout + ended.stderr


class Topics(Judge):
    def setUp(self):
        ready = subprocess.run([ASKED.tree / "tools/kafka", "ready"], capture_output=True, text=True)
        if ready.returncode != 0:
            self.assertNotIn("kafka", os.environ.get("TACIT_REQUIRE", "").split(","), ready.stdout)
            self.skipTest(ready.stdout)

    def test_offers(self):
        stream = self.open("offers", unit="user")
        truth = stream.truth
        broker = Broker(stream.folder / "broker")
        self.addCleanup(broker.tool, "wipe")
        broker.tool("topic", "offers", "1")
        sender = stream.folder / "sender.yaml"
        sender.write_text(f"""
source: {{kind: kafka, topic: offers, format: json}}
kafka: {{bootstrap.servers: "{broker.bootstrap}"}}
schema: {{features: [{{name: price, kind: dense}}]}}
store: {{path: {stream.folder}/unused, witness: {stream.folder}/unused-witness}}
learners:
  - {{id: unused, model: {{kind: linear}}, mechanism: {{kind: sums}}, participation: {{mode: once}},
     privacy: {{unit: event, epsilon: 1, delta: 1.0e-6}}}}
""")
        stream.done("tacit", "replay", "--config", sender, "--key", "none", *truth.files)
        report = stream.inspect(files=["--topic", "offers", "--bootstrap", broker.bootstrap, "--wait", "60"])
        self.judge_report(stream, report)
        self.judge_guess(stream, report)
        self.assertIn("a model of the next item is proposed beside the model of labels", report)
        said = stream.done("tacit", "evaluate", "--config", stream.config, "--held-out", HELD_OUT, status=2)
        self.assertIn("topic", said)
        said = stream.learn()
        # There is nothing after a topic's end: the table judges what came after the first release, and of a learner
        # with one release it says that nothing is known.
        release = re.search(r"^  since release 1 .* (\d\.\d{4}) \d\.\d{3}-\d\.\d{3}$", said, re.MULTILINE)
        self.assertTrue(release, said)
        self.judge_figure(stream, "AUC", float(release.group(1)), truth.auc, truth.deviation, distance=.1)
        self.assertIn("Nothing tells yet how good learner 'next' is", said)
        self.assertIn("judges it on the last records of files", said)
        self.judge_answers(stream)
        self.judge_recommended(stream)
        stream.close()


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *TESTS], verbosity=2)
