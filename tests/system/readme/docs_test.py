"""tools/docs makes the site of the pages, and fails on a link that leads nowhere.

  docs_test.py ROOT
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))


def run(root, out):
    return subprocess.run([root / "tools/docs", "--out", out], capture_output=True, text=True)


class DocsTest(unittest.TestCase):
    def setUp(self):
        ready = subprocess.run([ROOT / "tools/pypi", "docs", "ready"], capture_output=True, text=True)
        if ready.returncode != 0 and "docs" not in os.environ.get("TACIT_REQUIRE", "").split(","):
            self.skipTest(ready.stdout.strip())
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    # A tree of its own, of one page.
    def tree(self, text):
        root = self.dir / "tree"
        (root / "tools").mkdir(parents=True)
        for name in ("docs", "docs-packages.txt", "pypi", "common.sh"):
            shutil.copy(ROOT / "tools" / name, root / "tools" / name)
        (root / "README.md").write_text(text)
        for command in (["init", "--quiet"], ["add", "README.md"]):
            subprocess.run(["git", "-C", root, *command], check=True)
        return root

    def test_all_pages_are_on_the_site(self):
        made = run(ROOT, self.dir / "site")
        self.assertEqual(made.returncode, 0, made.stderr)
        index = (self.dir / "site/index.html").read_text()
        for place in ("docs/start.html", "docs/concepts/privacy.html", "docs/operating/restore.html", "docs/reference/http.html"):
            self.assertIn(f'href="{place}"', index)
            self.assertTrue((self.dir / "site" / place).is_file(), place)
        self.assertIn("Keys of the configuration", index)  # the heading of a printed page, in the menu
        self.assertTrue((self.dir / "site/docs/dashboard.png").is_file())
        self.assertIn("differential privacy", (self.dir / "site/search/search_index.json").read_text())

    def test_a_dead_link_is_named(self):
        made = run(self.tree("# Here\n\n[there](docs/there.md)\n"), self.dir / "site")
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("docs/there.md", made.stderr)

    def test_a_dead_anchor_is_named(self):
        made = run(self.tree("# Here\n\n[there](#there)\n"), self.dir / "site")
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("#there", made.stderr)

    def test_what_loads_from_elsewhere_is_refused(self):
        made = run(self.tree('# Here\n\n<img src="https://example.org/a.png">\n'), self.dir / "site")
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("another host", made.stderr)


if __name__ == "__main__":
    unittest.main()
