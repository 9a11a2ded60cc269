"""The command of docs/using/pipe.md that learns from Parquet files, with files of the test's own.

pipe_page_test.py TREE PROGRAMS. DuckDB comes by `tools/pypi duckdb fetch`; where it is missing the test is left out, and
fails where TACIT_REQUIRE holds duckdb.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TREE, PROGRAMS = (pathlib.Path(word) for word in sys.argv[1:3])
ROWS = 20_000

CONFIG = """
source: {kind: log, files: [none], format: criteo_tsv}
store: {path: store}
serve: {listen: ""}
schema: {features: [{name: hour, kind: dense}, {name: shop, kind: categorical, buckets: 64}]}
learners:
  - {id: sums, model: {kind: linear}, mechanism: {kind: sums}, participation: {mode: once, batch: 5000},
     privacy: {unit: event, epsilon: 8, delta: 1.0e-6}}
"""


class PipePage(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "shop.yaml").write_text(CONFIG)
        for day in range(2):
            duckdb.sql(f"COPY (SELECT (i % 7 = 0)::INT AS label, i % 24 AS hour, 'shop-' || i % 9 AS shop "
                       f"FROM range({day * ROWS // 2}, {(day + 1) * ROWS // 2}) numbers(i)) "
                       f"TO '{self.folder}/day_{day}.parquet'")
        # PyPI's package has no program; Debian's and DuckDB's own have one of this name.
        program = self.folder / "bin/duckdb"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nPYTHONPATH={FOUND} exec /usr/bin/python3 -c "
                           f"'import duckdb, sys; duckdb.sql(sys.argv[2])' \"$@\"\n")
        program.chmod(0o755)

    def run_page(self):
        command = re.search(r"```sh\n(duckdb .*?tacitd.*?)```", (TREE / "docs/using/pipe.md").read_text(), re.S).group(1)
        command = command.replace("config/criteo.yaml", "shop.yaml")
        return subprocess.run(["bash", "-c", command], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{self.folder}/bin:{PROGRAMS}:{os.environ['PATH']}"})

    def charged(self):
        shown = subprocess.run([PROGRAMS / "tacit", "ledger", "show", "--store", self.folder / "store", "--json"],
                               capture_output=True, text=True, check=True)
        learner = json.loads(shown.stdout)["learners"][0]
        return learner["steps"], learner["epsilon"]

    def test_learns_from_parquet_files_once(self):
        learnt = self.run_page()
        self.assertEqual(learnt.returncode, 0, learnt.stderr)
        steps, epsilon = self.charged()
        self.assertGreaterEqual(steps, ROWS // 5000)
        again = self.run_page()
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(self.charged(), (steps, epsilon))
        letters = self.folder / "store.dead-letters.jsonl"
        self.assertEqual(letters.read_text() if letters.exists() else "", "")
        # Fewer rows: refused, and nothing is charged.
        (self.folder / "day_0.parquet").unlink()
        other = self.run_page()
        self.assertEqual(other.returncode, 3, other.stderr)
        self.assertIn("since it was read", other.stderr)
        self.assertEqual(self.charged(), (steps, epsilon))


if __name__ == "__main__":
    ready = subprocess.run([TREE / "tools/pypi", "duckdb", "ready"], capture_output=True, text=True)
    FOUND = ready.stdout.strip()
    if ready.returncode != 0:
        print(f"left out: {FOUND}")
        sys.exit(1 if "duckdb" in os.environ.get("TACIT_REQUIRE", "").split(",") else 0)
    sys.path.insert(0, FOUND)
    import duckdb
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
