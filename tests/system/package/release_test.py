"""tools/release makes the same files of one commit under any umask and time zone, and refuses what is unfinished.

release_test.py TREE PROGRAMS. The site comes by `tools/pypi docs fetch`; where it is missing the test is left out, and
fails where TACIT_REQUIRE holds docs.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest

TREE, PROGRAMS = (pathlib.Path(word) for word in sys.argv[1:3])
UNFINISHED = "# Changelog\n\n## [0.1.0] - not released yet\n\n- News.\n\n## [0.0.9] - 2026-01-01\n\n- Old.\n"


def release(out, umask, zone):
    made = subprocess.run([TREE / "tools/release", "--trial", "--as-built", "--out", out], capture_output=True, text=True,
                          umask=umask, env={**os.environ, "TZ": zone})
    if made.returncode != 0:
        sys.exit(made.stdout + made.stderr)
    return {path.name: path.read_bytes() for path in out.iterdir()}


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.work.cleanup)
        cls.folder = pathlib.Path(cls.work.name)
        cls.first = release(cls.folder / "first", 0o077, "Pacific/Auckland")
        begun = int(time.time())
        while int(time.time()) == begun:  # archives count in seconds
            time.sleep(0.05)
        cls.second = release(cls.folder / "second", 0o022, "UTC")

    def test_are_there(self):
        self.assertEqual(sorted(self.first), ["SHA256SUMS", "notes.md", "tacit-docs_0.1.0.tar.gz", "tacit_0.1.0_amd64.cdx.json",
                                              "tacit_0.1.0_amd64.deb"])

    def test_are_the_same_each_time(self):
        for name, content in self.first.items():
            self.assertTrue(content == self.second[name], name)

    def test_have_their_sums(self):
        checked = subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=self.folder / "first",
                                 capture_output=True, text=True)
        self.assertEqual((checked.returncode, checked.stdout.count(": OK")), (0, 4), checked.stderr)

    def test_notes_are_the_version_s(self):
        text = self.first["notes.md"].decode()
        self.assertEqual([line for line in text.splitlines() if line.startswith("## ")], ["## [0.1.0] - not released yet"])
        self.assertIn(text, (TREE / "CHANGELOG.md").read_text() + "\n")

    def test_everybody_may_read_what_is_installed(self):
        unpacked = self.folder / "unpacked"
        subprocess.run(["dpkg-deb", "-x", self.folder / "first/tacit_0.1.0_amd64.deb", unpacked], check=True)
        paths = list(unpacked.rglob("*"))
        self.assertGreater(len(paths), 50)
        for path in paths:
            self.assertEqual(path.stat().st_mode & 0o044, 0o044, path)

    def test_the_site_is_whole(self):
        with tarfile.open(self.folder / "first/tacit-docs_0.1.0.tar.gz") as site:
            names = site.getnames()
        self.assertIn("tacit-docs/index.html", names)
        self.assertIn("tacit-docs/search/search_index.json", names)


class Refusals(unittest.TestCase):
    def setUp(self):
        self.work = tempfile.TemporaryDirectory()
        self.addCleanup(self.work.cleanup)
        self.tree = pathlib.Path(self.work.name)
        for name in ("tools/release", "tools/common.sh", "packaging/python/pyproject.toml", "CMakeLists.txt"):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(TREE / name, self.tree / name)
        (self.tree / "CHANGELOG.md").write_text(UNFINISHED)
        self.git("init", "-q")
        self.commit()

    def git(self, *words):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=self.tree, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "all")

    def refused(self, *options):
        asked = subprocess.run([self.tree / "tools/release", *options], capture_output=True, text=True)
        self.assertEqual((asked.returncode, asked.stdout), (1, ""))
        self.assertFalse((self.tree / "build").exists())
        return asked.stderr

    def test_a_version_that_is_not_released_yet(self):
        self.assertIn('CHANGELOG.md gives [0.1.0] no date: "## [0.1.0] - YYYY-MM-DD"', self.refused())

    def test_a_tree_with_changes(self):
        (self.tree / "news").write_text("more")
        self.assertIn("has changes that are not committed", self.refused())

    def test_a_version_without_notes(self):
        (self.tree / "CHANGELOG.md").write_text(UNFINISHED.replace("0.1.0", "0.2.0"))
        self.commit()
        self.assertIn("CHANGELOG.md has no section [0.1.0]", self.refused("--trial"))

    def test_a_wheel_of_another_version(self):
        wheel = self.tree / "packaging/python/pyproject.toml"
        wheel.write_text(wheel.read_text().replace('version = "0.1.0"', 'version = "0.0.9"'))
        self.commit()
        self.assertIn("packaging/python/pyproject.toml is not", self.refused())

    def test_a_folder_that_holds_something_else(self):
        (self.tree / "mine").mkdir()
        self.assertIn("mine is there, and is no release", self.refused("--trial", "--out", str(self.tree / "mine")))
        self.assertTrue((self.tree / "mine").is_dir())


if __name__ == "__main__":
    ready = subprocess.run([TREE / "tools/pypi", "docs", "ready"], capture_output=True, text=True)
    if ready.returncode != 0:
        print(f"left out: {ready.stdout.strip()}")
        sys.exit(1 if "docs" in os.environ.get("TACIT_REQUIRE", "").split(",") else 0)
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
