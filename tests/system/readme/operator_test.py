"""The operator's pages: each command for a service runs, against a service that is broken as its page says.

operator_test.py TREE PROGRAMS. A block of commands has a line `<!-- state: NAME -->` above it; the test of that
name breaks a service so, runs the block in one shell that stops at the first failure, and looks at what has
become of the service. systemctl and journalctl are stand-ins, which start the unit's own command; folders of
the service lie in a folder of the test.
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

TREE, PROGRAMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
GUIDE = TREE / "docs/operating"
BLOCK = re.compile(r"^<!-- (state|left out): ([^\n]+) -->\n```sh\n(.*?)^```$", re.M | re.S)

# The unit's command behind systemctl. Files may grow as long as one checkpoint at most is there, where the
# test asks for a full disk.
SYSTEMCTL = r"""#!/bin/bash
R=@R@
running() { [ -s $R/pid ] && kill -0 "$(cat $R/pid)" 2>/dev/null; }
told() { grep -c "SIGHUP: " $R/journal; }
stop() {
  [ -e $R/pid ] || return 0
  ! running || kill "$(cat $R/pid)"
  # The status is the last that is written of a life: none of it may come after the next start.
  until [ -e $R/status ]; do sleep 0.05; done
}
start() {
  limit=
  if [ -e $R/full ] && [ "$(ls -d $R/var/lib/tacit/store.checkpoints/full-* | wc -l)" -gt 1 ]; then
    limit="prlimit --fsize=$(cat $R/full)"
  fi
  rm -f $R/status
  NOTIFY_SOCKET=$R/nobody setsid bash -c "$limit @EXEC@ & echo \$! >$R/pid; wait \$!;
      echo \$? >$R/status.new && mv $R/status.new $R/status" >>$R/journal 2>&1 </dev/null &
  for _ in $(seq 1200); do
    [ -e $R/status ] && exit "$(cat $R/status)"
    curl -sf -o /dev/null --unix-socket $R/run/tacit/operator http://localhost/healthz && return
    sleep 0.05
  done
  exit 1
}
# As the unit's notify-reload: it returns when the daemon says that it is done.
reload() {
  local before=$(told)
  kill -HUP "$(cat $R/pid)"
  for _ in $(seq 1200); do
    [ "$(told)" -gt "$before" ] && return
    sleep 0.05
  done
  exit 1
}
case "$*" in
  "start tacitd" | "enable --now tacitd") start ;;
  "stop tacitd") stop ;;
  "restart tacitd") stop; start ;;
  "reload tacitd") reload ;;
  "is-active tacitd") running && echo active ;;
  *) echo "systemctl $*: not in the unit's life" >&2; exit 1 ;;
esac
"""


class Service:
    """A service in a folder of its own."""

    def __init__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="op"))
        for folder in ("bin", "etc/tacit", "var/lib/tacit", "var/lib/tacit-witness", "var/backups", "run/tacit"):
            (self.root / folder).mkdir(parents=True)
        unit = (TREE / "systemd/tacitd.service").read_text()
        command = re.search(r"^ExecStart=/usr/bin/(.+)$", unit, re.M).group(1)
        self.tool("systemctl", SYSTEMCTL.replace("@R@", str(self.root)).replace(
            "@EXEC@", self.placed(str(PROGRAMS / command))))
        self.tool("journalctl", f'#!/bin/bash\n[ "$1 $2 $3" = "-u tacitd -n" ] && tail -n "$4" {self.root}/journal\n')

    def tool(self, name, text):
        (self.root / "bin" / name).write_text(text)
        (self.root / "bin" / name).chmod(0o755)

    def placed(self, text):
        """The text with the service's folders in this one."""
        text = re.sub(r"(?<![\w/])/(etc/tacit|var/lib/tacit|var/log/clicks|run/tacit|var/backups)",
                      rf"{self.root}/\1", text)
        return text.replace("tar -C / ", f"tar -C {self.root} ")

    def write(self, place, text):
        (self.root / place).write_text(self.placed(text))

    def run(self, script, status=0):
        environment = os.environ | {"PATH": f"{self.root}/bin:{PROGRAMS}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", self.placed(script)], text=True,
                              capture_output=True, env=environment, cwd=self.root)
        if done.returncode != status:
            raise AssertionError(f"ended with status {done.returncode}, not {status}:\n{script}\n{done.stdout}"
                                 f"{done.stderr}\nthe journal:\n{self.journal()[-4000:]}")
        return done.stdout

    def ask(self, path):
        return self.run(f"curl -s -w '%{{http_code}}' --unix-socket /run/tacit/operator http://localhost{path}")

    def journal(self):
        file = self.root / "journal"
        return file.read_text() if file.exists() else ""

    def until(self, what, holds):
        for _ in range(1200):
            if holds():
                return
            time.sleep(0.05)
        raise AssertionError(f"waited in vain: {what}\n{self.journal()[-4000:]}")

    def end(self):
        pid, status = self.root / "pid", self.root / "status"
        if pid.exists() and not status.exists():
            try:
                os.kill(int(pid.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass
            # It would be written into a folder that is gone already.
            self.until("the end is told", status.exists)
        shutil.rmtree(self.root, ignore_errors=True)

    # --- what it learns from ---

    def clicks(self, day, rows=2000):
        self.run(f"""tacit generate criteo --days {day + 1} --rows {rows} --plain --out /var/backups/log >/dev/null
mkdir -p log && mv var/backups/log/day-{day:02}.tsv log/ && rm -r var/backups/log""")

    def configure(self, source=None, privacy="{unit: event, epsilon: 8, delta: 1.0e-7}", learner=None, more=""):
        source = source or f"{{kind: log, files: [{self.root}/log/*.tsv]}}"
        learner = learner or "model: {kind: linear}\n    mechanism: {kind: sums}\n    participation: {mode: once, batch: 1000}"
        columns = [f"    - {{name: I{i}, kind: dense}}" for i in range(1, 14)]
        columns += [f"    - {{name: C{i}, kind: categorical, buckets: 256}}" for i in range(1, 27)]
        self.write("etc/tacit/tacit.yaml", f"""source: {source}
learners:
  - id: ctr
    {learner}
    privacy: {privacy}
store: {{path: /var/lib/tacit/store, witness: /var/lib/tacit-witness/store.witness, commit_interval_ms: 20}}
serve: {{listen: "", operator_listen: "unix:/run/tacit/operator"}}
training: {{idle_priority: false}}
{more}schema:
  features:
""" + "\n".join(columns) + "\n")

    def start(self):
        self.run("systemctl start tacitd")
        self.until("it learns", lambda: re.search(r'"steps":[1-9]', self.ask("/v1/privacy")))


def pages():
    return [page.read_text() for page in sorted(GUIDE.glob("*.md"))]


def blocks():
    return [found for text in pages() for found in BLOCK.findall(text)]


class Guide(unittest.TestCase):
    def setUp(self):
        self.service = Service()
        self.addCleanup(self.service.end)

    def type_in(self, name, part=None):
        """Runs the blocks of a state, or the one of them that has `part` in it."""
        texts = [text for kind, state, text in blocks() if kind == "state" and state == name]
        texts = [text for text in texts if part is None or part in text]
        self.assertTrue(texts, f"the guide has no block of the state {name}")
        return "".join(self.service.run(text) for text in texts)

    def running(self):
        self.service.clicks(0)
        self.service.configure()
        self.service.start()

    def test_configured(self):
        self.service.clicks(0)
        self.service.configure()
        said = self.type_in("configured")
        self.assertIn("store:", said)
        self.assertTrue(said.endswith("active\n"), said[-200:])

    def test_running_watch_and_reload(self):
        self.running()
        said = self.type_in("running", "systemctl reload")
        self.assertIn("SIGHUP: the configuration is as it was", said)
        said = self.type_in("running", "/metrics")
        self.assertIn("tacit_ready 1", said)
        self.assertIn("commit: ", said)

    def test_running_back_up(self):
        self.running()
        self.type_in("running", "checkpoint pack")
        self.assertGreater((self.service.root / "var/backups/tacit.tar.zst").stat().st_size, 1000)

    def test_running_move(self):
        self.running()
        self.type_in("running", "tar -C /")
        names = self.service.run("tar -tf /var/backups/tacit-move.tar")
        self.assertIn("var/lib/tacit/store/CURRENT", names)
        self.assertIn("var/lib/tacit-witness/store.witness", names)

    def test_damaged(self):
        self.running()
        self.service.run("tacit checkpoint create --url unix:/run/tacit/operator")
        self.service.run("systemctl stop tacitd")
        # The planted damage: the first byte of every table is another one.
        for file in (self.service.root / "var/lib/tacit/store").rglob("*"):
            if file.suffix in (".sst", ".blob") or file.name.startswith("MANIFEST"):
                data = bytearray(file.read_bytes())
                data[len(data) // 2] ^= 0xFF
                # Checkpoints share the file: a new one takes its place.
                file.unlink()
                file.write_bytes(data)
        self.service.run("systemctl start tacitd", status=3)
        said = self.type_in("damaged")
        self.assertIn("store", said)
        self.assertIn("200", self.service.ask("/readyz"))
        self.assertTrue((self.service.root / "var/lib/tacit/store.lost").is_dir())

    def test_exhausted(self):
        self.service.clicks(0)
        self.service.configure()
        self.service.start()
        # A budget below what is spent, as one is that was lowered, and records that it cannot pay for.
        self.service.run("systemctl stop tacitd")
        self.service.configure(privacy="{unit: event, epsilon: 1, delta: 1.0e-7}")
        self.service.clicks(1)
        self.service.run("systemctl start tacitd")
        self.service.until("the budget is gone", lambda: re.search(
            r'tacit_privacy_budget_exhausted\{learner="ctr"\} 1', self.service.ask("/metrics")))
        said = self.type_in("exhausted")
        self.assertIn('"exhausted":true', said.replace(" ", ""))

    def test_disk_full(self):
        self.running()
        for day in (1, 2):
            self.service.run("tacit checkpoint create --url unix:/run/tacit/operator")
            before = self.steps_of()
            self.service.run("systemctl stop tacitd")
            self.service.clicks(day)
            if day == 1:
                self.service.start()
                # A checkpoint of the commit that has one already would be the same folder.
                self.service.until("the day is learnt", lambda: self.steps_of() > before)
        checkpoints = self.service.root / "var/lib/tacit/store.checkpoints"
        self.assertEqual(len(list(checkpoints.glob("full-*"))), 2)
        (self.service.root / "full").write_text("4096")
        try:
            self.service.run("systemctl start tacitd")
            self.service.until("training fails", lambda: "503" in self.service.ask("/readyz"))
        except AssertionError:
            # It may fail before it serves, as the disk has no room for its first file.
            self.assertEqual((self.service.root / "status").read_text().strip(), "1", self.service.journal())
        self.type_in("disk-full")
        self.assertIn("200", self.service.ask("/readyz"))
        self.assertEqual(len(list(checkpoints.glob("full-*"))), 1)

    def steps_of(self):
        return json.loads(self.service.run(
            "curl -sf --unix-socket /run/tacit/operator http://localhost/v1/privacy"))["learners"][0]["steps"]

    def test_witness_lost(self):
        self.running()
        self.service.run("systemctl stop tacitd")
        witness = self.service.root / "var/lib/tacit-witness/store.witness"
        witness.unlink()
        self.service.run("systemctl start tacitd", status=3)
        self.type_in("witness-lost")
        self.assertTrue(witness.exists())
        self.assertIn("200", self.service.ask("/readyz"))

    def cut(self):
        """Runs on two files, the first of which ends within a gzip member; returns it, and its rest."""
        self.service.clicks(0)
        self.service.clicks(1)
        first = self.service.root / "var/log/clicks/day-00.tsv.gz"
        first.parent.mkdir(parents=True)
        for day in (0, 1):
            whole = gzip.compress((self.service.root / f"log/day-{day:02}.tsv").read_bytes())
            first.with_name(f"day-{day:02}.tsv.gz").write_bytes(whole[: len(whole) // (2 - day)])
            if day == 0:
                rest = whole[len(whole) // 2 :]
        self.service.configure(source="{kind: log, files: [/var/log/clicks/*.tsv.gz]}")
        self.service.run("systemctl start tacitd")
        self.service.until("it waits for the rest", lambda: "is not whole" in self.service.ask("/readyz"))
        return first, rest

    def test_file_cut(self):
        first, rest = self.cut()
        self.assertIn(f"at byte {first.stat().st_size} of {first}", self.type_in("file-cut"))
        with first.open("ab") as file:
            file.write(rest)
        self.service.until("the file is whole", lambda: "is not whole" not in self.service.ask("/readyz"))

    def test_file_lost(self):
        self.cut()
        self.type_in("file-lost")
        self.assertNotIn("is not whole", self.service.ask("/readyz"))
        letters = (self.service.root / "var/lib/tacit/store.dead-letters.jsonl").read_text()
        self.assertIn("truncated gzip data", letters)

    def test_broker_gone(self):
        self.service.configure(source="{kind: kafka, topic: clicks}",
                               more="kafka: {bootstrap.servers: '127.0.0.1:1', group.id: tacit}\n")
        self.service.run("systemctl start tacitd")
        self.service.until("it misses the broker", lambda: "out of reach" in self.service.ask("/readyz"))
        said = self.type_in("broker-gone")
        self.assertIn("the source of interactions is out of reach", said)
        self.assertRegex(said, r"(?m)^tacit_source_connected 0$")

    def test_users(self):
        lines = []
        for i in range(600):
            lines.append(json.dumps({"label": 1, "user": f"u{i % 30}", "item": f"i{(i * 7 + i // 30) % 20}",
                                     "timestamp_ms": 1000 + i}))
        (self.service.root / "log").mkdir()
        (self.service.root / "log/day-0.jsonl").write_text("\n".join(lines) + "\n")
        (self.service.root / "items.dat").write_text("".join(f"i{i}\n" for i in range(20)))
        (self.service.root / "etc/tacit/opt-out").write_text("")
        self.service.configure(
            source=f"{{kind: log, format: json, files: [{self.service.root}/log/*.jsonl], opt_out: /etc/tacit/opt-out}}",
            privacy="{unit: user, epsilon: 8, delta: 1.0e-6}",
            learner="model: {kind: transitions}\n    history: {items: 20}\n    mechanism: {kind: counts}\n"
                    "    participation: {mode: once, batch: 300, max_participations: 2}",
            more=f"catalogue: {{file: {self.service.root}/items.dat}}\n")
        self.service.start()
        # The second period gives u12 a history anew, if it is learnt after the first was forgotten.
        self.service.until("both periods are learnt", lambda: self.steps_of() == 2)
        held = self.service.run("tacit user show u12 --url unix:/run/tacit/operator")
        self.assertIn('"i', held)
        self.type_in("users")
        after = self.service.run("tacit user show u12 --url unix:/run/tacit/operator")
        self.assertNotIn('"i1', after)
        self.assertIn("1 user", self.service.journal().lower().replace("1 users", "1 user"))

    def test_each_block_has_its_test(self):
        found = blocks()
        states = {name for kind, name, _ in found if kind == "state"}
        tests = " ".join(name.removeprefix("test_") for name in dir(self) if name.startswith("test_"))
        for state in states:
            self.assertIn(state.replace("-", "_"), tests)
        marks = sum(text.count("<!-- state:") for text in pages())
        self.assertEqual(sum(kind == "state" for kind, _, _ in found), marks, "a state above no block")
        # Blocks without a state are readme_test's. It lets a page install a package, which the package's test runs.
        package = (TREE / "tests/system/package/package_test").read_text()
        installs = [text for kind, _, text in found if kind == "left out" and "apt " in text]
        self.assertEqual(len(installs), 2)
        for text in installs:
            self.assertIn("apt-get install", package)
            self.assertRegex(text, r"^apt install \./tacit_[\d.]+_amd64\.deb\n$")

    def test_a_command_that_fails_is_seen(self):
        """The planted fault: a guide whose commands do not work."""
        self.running()
        with self.assertRaisesRegex(AssertionError, "ended with status"):
            self.service.run("tacit ledger show --store /var/lib/tacit/elsewhere\ntrue\n")

    def test_tables(self):
        alerts = re.findall(r"- alert: (\w+)", (TREE / "config/alerts.yaml").read_text())
        self.assertEqual(re.findall(r"(?m)^\| `(Tacit\w+)` \|", (GUIDE / "alerts.md").read_text()), alerts)
        codes = re.findall(r"kExit\w+ = (\d)", (TREE / "src/console/exit_code.h").read_text())
        table = (GUIDE / "exit-statuses.md").read_text()
        self.assertEqual(re.findall(r"(?m)^\| (\d) \|", table), codes)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
