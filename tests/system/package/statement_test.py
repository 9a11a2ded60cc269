"""The statement that others file: by the registry's schema, by our own, and beside an older one.

statement_test.py TREE PROGRAMS. The validator comes by `tools/pypi openapi fetch`, the registry's schema lies in
../shared/data/schemas; where one is missing its tests are left out, and fail where TACIT_REQUIRE holds openapi or data.
"""

import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

TREE, PROGRAMS = (pathlib.Path(word) for word in sys.argv[1:3])
REGISTRY = TREE / "../shared/data/schemas/opendp_deployments_schema.yaml"
REQUIRED = os.environ.get("TACIT_REQUIRE", "").split(",")

HEAD = """
source: {{kind: log, files: ["{folder}/*.jsonl"], format: json}}
store: {{path: "{folder}/store"}}
serve: {{listen: ""}}
schema: {{features: [{{name: hour, kind: dense}}, {{name: shop, kind: categorical, buckets: 64}}]}}
"""
SUMS = """
  - {id: sums, model: {kind: linear}, mechanism: {kind: sums}, participation: {mode: once, batch: 500},
     privacy: {unit: event, epsilon: 8, delta: 1.0e-6}}"""
NETWORK = """
  - {id: network, model: {kind: pctr, hidden: [4]}, mechanism: {kind: dp-sgd}, participation: {mode: once, batch: 500},
     privacy: {unit: event, epsilon: 4, delta: 1.0e-7}}"""
FORWARD = """
  - {id: forward, model: {kind: pctr, hidden: [4]}, mechanism: {kind: forward}, participation: {mode: once, batch: 500},
     privacy: {unit: event, epsilon: 4, delta: 1.0e-7}}"""
USERS = """
  - {id: users, model: {kind: pctr, hidden: [4]}, mechanism: {kind: dp-sgd},
     participation: {mode: once, batch: 500, max_participations: 4},
     privacy: {unit: user, epsilon: 8, delta: 1.0e-6, on_exhausted: exit}}"""
SILENT = """
  - {id: silent, model: {kind: pctr, hidden: [4]}, mechanism: {kind: none}, participation: {mode: once, batch: 500},
     privacy: {unit: event, epsilon: .inf, delta: 1.0e-6}}"""
ABOUT = """
about:
  name: Clicks of a Shop
  curators: [The shop, "A: \\"second\\" one"]
  description: |
    Two lines: the chance of a click,
      é and # included.
  intended_use: To rank.
  region: Everywhere
  sector: Technology
  contact: privacy@shop.example
  epsilon_reason: By the board.
  retention: A week.
"""
TOPICS = """
feed: {topic: model}
workers: {topic: sum, key_file: /k}
kafka: {bootstrap.servers: x, errors.deadletterqueue.topic.name: dead}
"""
ABOUT_KEYS = ("name", "curators", "intended_use", "description", "region", "sector", "contact", "epsilon_reason",
              "retention")


def leaves(record, path=""):
    if not isinstance(record, dict):
        return {path}
    return {leaf for key, value in record.items() for leaf in leaves(value, f"{path}.{key}")}


def gaussian_delta(mu, epsilon):
    """Balle and Wang 2018, theorem 8."""
    def phi(x):
        return math.erfc(-x / math.sqrt(2)) / 2
    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


class Service:
    """A folder with a log, and a store that has learnt from it."""

    def __init__(self, folder, learners, more=""):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        self.seed, self.more, self.learners = 0, more, learners
        self.config = self.folder / "c.yaml"
        self.learn()

    def learn(self):
        source = random.Random(self.seed)
        lines = [json.dumps({"label": source.randrange(2), "user": f"u{source.randrange(40)}",
                             "features": {"hour": source.randrange(24), "shop": f"s{source.randrange(9)}"}})
                 for _ in range(1200)]
        (self.folder / f"day-{self.seed}.jsonl").write_text("\n".join(lines) + "\n")
        self.seed += 1
        self.config.write_text(HEAD.format(folder=self.folder) + f"learners:{self.learners}\n{self.more}")
        subprocess.run([PROGRAMS / "tacitd", "--config", self.config, "--until-end"], check=True, capture_output=True)

    def report(self, *options, status=0):
        done = subprocess.run([PROGRAMS / "tacit", "privacy", "report", "--store", self.folder / "store", *options],
                              capture_output=True, text=True)
        assert done.returncode == status, (done.returncode, done.stderr)
        return done

    def config_with(self, name, *, about="", source=""):
        text = self.config.read_text() + about
        if source:
            text = text.replace(text.split("\n")[1], source) + TOPICS
        path = self.folder / name
        path.write_text(text)
        return path

    def record(self, config=None):
        """The record, and the lines of what is not written."""
        done = self.report("--format", "registry", *(["--config", config] if config else []))
        return yaml.safe_load(done.stdout), done.stderr.splitlines()

    def total(self):
        done = subprocess.run([PROGRAMS / "tacit", "ledger", "show", "--store", self.folder / "store", "--json"],
                              capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["total"]


class Statement(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        place = tempfile.TemporaryDirectory()
        cls.addClassCleanup(place.cleanup)
        cls.place = pathlib.Path(place.name)
        cls.one = Service(cls.place / "one", SUMS)
        cls.two = Service(cls.place / "two", SUMS + NETWORK, "budget: {epsilon: 12, delta: 1.0e-6}\n")
        cls.users = Service(cls.place / "users", USERS)
        cls.mixed = Service(cls.place / "mixed", SUMS + USERS)
        cls.silent = Service(cls.place / "silent", SUMS + SILENT)
        cls.forward = Service(cls.place / "forward", FORWARD)
        cls.ours = jsonschema.Draft202012Validator(json.loads((TREE / "schemas/statement.json").read_text()))

    # -- the registry --

    def registry(self):
        if not REGISTRY.exists():
            if "data" in REQUIRED:
                self.fail(f"TACIT_REQUIRE asks for real data, and {REGISTRY} is missing")
            self.skipTest(f"{REGISTRY} is missing")
        schema = yaml.safe_load(REGISTRY.read_text())
        return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker(["date"]))

    def test_every_record_is_valid_by_the_registrys_schema(self):
        valid = self.registry()
        for service in (self.one, self.two, self.users, self.mixed, self.silent, self.forward):
            for config in (None, service.config, service.config_with("about.yaml", about=ABOUT)):
                record, _ = service.record(config)
                self.assertEqual([error.message for error in valid.iter_errors(record)], [], service.folder)
        # A field that the registry does not know, and one that it wants, show that it is strict.
        for section, key, value in (("basic", "contact", "x"), ("basic", "publication_date", "May"),
                                    ("privacy_loss", "privacy_unit", 3), ("dp_variant", "variant_name", "DP")):
            record, _ = self.one.record()
            record["deployment"][section][key] = value
            self.assertFalse(valid.is_valid(record), key)

    def test_all_that_is_known_is_filled(self):
        kafka = 'source: {kind: kafka, format: json, topic: clicks, periods: topic}'
        full, unwritten = self.one.record(self.one.config_with("full.yaml", about=ABOUT, source=kafka))
        self.registry().validate(full)
        self.assertEqual(unwritten, [])
        self.assertEqual((full["tier"], full["status"], full["url_slug"]), (3, "Draft", "clicks_of_a_shop"))
        # All of the schema's leaves but rho, which this variant has not, and links to papers.
        known = {f".{one}.{two}" for one, section in self.registry().schema["properties"]["deployment"]["properties"].items()
                 for two in section["properties"]}
        found = {leaf.replace(".epsilon", "").replace(".delta", "") for leaf in leaves(full["deployment"])}
        self.assertEqual(known - found, {".administrative.sources"})
        model = full["deployment"]["deployment_model"]
        for actor in ("operator", "Readers of the feed", "brokers", "dead letters", "Workers"):
            self.assertIn(actor, model["actors"])
        self.assertNotIn("Callers", model["actors"])  # serve.listen is empty
        self.assertEqual(model["data_source_type"], "Dynamic")
        basic = full["deployment"]["basic"]
        self.assertEqual(basic["data_curators"], ["The shop", 'A: "second" one'])
        self.assertEqual(basic["description"], "Two lines: the chance of a click,\n  é and # included.")
        self.assertIn("Contact: privacy@shop.example", full["deployment"]["administrative"]["notes"])
        # Without all that, nobody else is told of.
        bare, _ = self.one.record(self.one.config)
        for actor in ("feed", "broker", "Workers"):
            self.assertNotIn(actor, bare["deployment"]["deployment_model"]["actors"])

    def test_what_the_operator_has_not_written_is_named(self):
        record, unwritten = self.one.record()
        for key in ABOUT_KEYS:
            self.assertEqual(len([line for line in unwritten if line.startswith(f"about.{key}: ")]), 1, key)
        basic = record["deployment"]["basic"]
        for text in (basic["name"], basic["data_curators"][0], basic["intended_use"], basic["description"],
                     basic["data_product_region"]):
            self.assertTrue(text.startswith("NOT WRITTEN YET"), text)
        self.assertNotIn("data_product_sector", basic)
        self.assertNotIn("justification", record["deployment"]["implementation"])
        self.assertEqual((record["tier"], record["url_slug"]), (1, "not_written_yet"))
        _, some = self.one.record(self.one.config_with("some.yaml", about="about: {region: Here}\n"))
        self.assertNotIn("about.region", "\n".join(some))

    def test_the_numbers_are_the_ledgers(self):
        for service in (self.one, self.two, self.users):
            total = service.total()
            loss = service.record()[0]["deployment"]["privacy_loss"]
            self.assertEqual(loss["privacy_parameters"], {"epsilon": total["epsilon"], "delta": total["delta"]})
            self.assertTrue(loss["privacy_unit"].startswith(total["unit"]))
        # One Gaussian to each event, in closed form.
        run = self.statement(self.one)["learners"][0]["runs"][0]
        spent = self.one.record()[0]["deployment"]["privacy_loss"]["privacy_parameters"]
        self.assertAlmostEqual(gaussian_delta(1 / run["noise_multiplier"], spent["epsilon"]) / 1e-6, 1, places=6)
        details = self.two.record()[0]["deployment"]["privacy_loss"]["privacy_parameters_details"]
        for part in ("All together may spend epsilon 12 at delta 1e-06", "of the promised 8, at delta 1e-06",
                     "of the promised 4, at delta 1e-07"):
            self.assertIn(part, details)

    def test_what_has_no_epsilon_has_none(self):
        for service, why in ((self.mixed, "learners have different units"), (self.silent, "silent promises nothing")):
            record, unwritten = service.record(service.config)
            self.assertNotIn("privacy_parameters", record["deployment"]["privacy_loss"])
            self.assertIn(why, "\n".join(unwritten))
            self.assertIn(why, record["deployment"]["privacy_loss"]["privacy_parameters_details"])
            self.assertIn("sums: epsilon", record["deployment"]["privacy_loss"]["privacy_parameters_details"])
        self.assertNotIn("variant_name", self.silent.record()[0]["deployment"]["dp_variant"])
        forward = self.forward.record()[0]["deployment"]["dp_variant"]
        self.assertEqual(forward["variant_name"], "Custom")
        self.assertIn("labels are not covered", forward["unprotected_quantities"])
        self.assertEqual(self.one.record()[0]["deployment"]["dp_variant"]["variant_name"], "Approximate DP")

    def test_a_configuration_of_another_ledger_is_refused(self):
        for config, why in ((self.users.config, "learner 'users'"),
                            (self.one.config_with("delta.yaml"), "in the ledger unit event and delta 1e-06")):
            config.write_text(config.read_text().replace("unit: event, epsilon: 8, delta: 1.0e-6",
                                                         "unit: event, epsilon: 8, delta: 1.0e-5"))
            refused = self.one.report("--format", "registry", "--config", config, status=2)
            self.assertIn(why, refused.stderr)
            self.assertEqual(refused.stdout, "")
        self.assertIn("needs --format registry", self.one.report("--config", self.one.config, status=2).stderr)

    # -- our own --

    def statement(self, service, *options):
        return json.loads(service.report("--format", "json", *options).stdout)

    def objects(self, value, path=()):
        if isinstance(value, dict):
            yield path
        for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            yield from self.objects(below, (*path, key))

    def test_our_statement_is_valid_and_the_schema_is_strict(self):
        self.ours.check_schema(self.ours.schema)
        old = self.place / "self.json"
        old.write_text(json.dumps(self.statement(self.two)))
        for service in (self.one, self.users, self.mixed, self.silent, self.forward):
            self.assertEqual([error.message for error in self.ours.iter_errors(self.statement(service))], [])
        whole = self.statement(self.two, "--compare", old)
        self.ours.validate(whole)
        optional = {"lower", "budget", "mu", "not_covered", "adjacency", "neighbours", "noise_multiplier", "sampling_probability",
                    "count", "rho", "xi", "event", "events"}
        for path in self.objects(whole):
            copy = json.loads(json.dumps(whole))
            at = copy
            for step in path:
                at = at[step]
            at["planted"] = 1
            self.assertFalse(self.ours.is_valid(copy), path)
            del at["planted"]
            for key in list(at):
                kept = at.pop(key)
                if key not in optional:
                    self.assertFalse(self.ours.is_valid(copy), (path, key))
                at[key] = kept

    def test_an_older_statement_is_compared(self):
        service = Service(self.place / "grows", SUMS)
        old = self.place / "old.json"
        old.write_text(service.report("--format", "json").stdout)
        before = json.loads(old.read_text())
        self.assertEqual(self.statement(service, "--compare", old)["compared"]["changes"], [])
        service.learners = SUMS.replace("batch: 500", "batch: 400") + NETWORK
        service.learn()
        now = self.statement(service, "--compare", old)
        self.ours.validate(now)
        compared = now["compared"]
        self.assertTrue(compared["in_chain"])
        self.assertEqual(compared["head"], before["head"])
        learners = {learner["learner"]: learner for learner in now["learners"]}
        self.assertIn(f"sums: steps is {learners['sums']['steps']}, and was {before['learners'][0]['steps']}",
                      compared["changes"])
        self.assertTrue(any(change.startswith(f"network: is new, with {learners['network']['steps']} step")
                            for change in compared["changes"]), compared["changes"])
        self.assertTrue(any(change.startswith("all together: epsilon is") for change in compared["changes"]))
        page = service.report("--compare", old).stdout
        self.assertIn("This ledger continues the one of", page.split("\n\n")[1])
        for change in compared["changes"]:
            self.assertIn(f"- {change}\n", page)
        newer = self.place / "newer.json"
        newer.write_text(json.dumps(now))
        for file in (old, newer):
            refused = self.one.report("--compare", file, status=1)
            self.assertTrue(refused.stdout.split("\n\n")[1].startswith(f"THE LEDGER OF {file} IS NOT CONTINUED"), refused.stdout)
            told = json.loads(self.one.report("--format", "json", "--compare", file, status=1).stdout)
            self.ours.validate(told)
            self.assertFalse(told["compared"]["in_chain"])
            self.assertIn("lineage", told["compared"]["reason"])

    def test_a_damaged_older_statement_is_refused_by_name(self):
        good = self.statement(self.one)
        old = self.place / "damaged.json"

        def run(statement):
            statement["learners"][0]["runs"][0]["noise_multiplier"] = 9

        def steps(statement):
            statement["learners"][0]["steps"] += 1

        def epsilon(statement):
            statement["learners"][0]["epsilon"] /= 2

        def head(statement):
            statement["head"] = "sha256:" + "0" * 64

        for damage, why in ((run, "entry 0 is not as the ledger has it"), (steps, "its steps are not the sum"),
                            (epsilon, "its epsilon is not its last run's"), (head, "its head is not its anchor's"),
                            (lambda statement: statement.pop("anchor"), "is no statement"),
                            (lambda statement: statement.update(learners=3), "is no statement"),
                            (lambda statement: statement.update(anchor="{}"), "is no anchor")):
            copy = json.loads(json.dumps(good))
            damage(copy)
            old.write_text(json.dumps(copy))
            refused = self.one.report("--compare", old, status=3)
            self.assertIn(f"--compare {old}: ", refused.stderr)
            self.assertIn(why, refused.stderr)
            self.assertEqual(refused.stdout, "")
        old.write_text("{")
        self.assertIn("is no statement", self.one.report("--compare", old, status=3).stderr)
        self.assertIn("no place", self.one.report("--format", "registry", "--compare", old, status=2).stderr)


if __name__ == "__main__":
    ready = subprocess.run([TREE / "tools/pypi", "openapi", "ready"], capture_output=True, text=True)
    if ready.returncode != 0:
        print(f"left out: {ready.stdout.strip()}")
        sys.exit(1 if "openapi" in REQUIRED else 0)
    sys.path.insert(0, ready.stdout.strip())
    import jsonschema
    import yaml
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
