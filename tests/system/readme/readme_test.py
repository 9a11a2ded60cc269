"""Every command of README.md and docs/ could run, and every link of these and of the rooms leads somewhere.

readme_test.py TREE PROGRAMS. Programs, commands, options and keys are there. All commands are run by
tests/campaign/readme.
"""

import pathlib
import re
import subprocess
import sys
import unittest

import readme_commands

TREE, PROGRAMS = sys.argv[1:3]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def check(text):
    return readme_commands.check_pages({"": text}, TREE, PROGRAMS)


def without_blocks(text):
    return re.sub(r"(?ms)^ *```.*?^ *```$", "", text)


def anchors(text):
    """The names that GitHub gives to the headings of a page."""
    heads = re.findall(r"(?m)^#+ (.+)$", without_blocks(text))
    return {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}


def dead_links(pages, tree):
    """Links of pages (texts by their paths) to files, folders and headings that are not there."""
    dead = []
    for page, text in pages.items():
        for link in LINK.findall(without_blocks(text)):
            if re.match("https?:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (pathlib.Path(tree) / page).parent / path if path else pathlib.Path(tree) / page
            if not target.exists():
                dead.append(f"{page}: there is no {link}")
            elif anchor and anchor not in anchors(text if not path else target.read_text()):
                dead.append(f"{page}: there is no heading {link}")
    return dead


def all_pages():
    tree = pathlib.Path(TREE)
    paths = [tree / "README.md", tree / "CONTRIBUTING.md", *sorted((tree / "docs").rglob("*.md"))]
    return {str(path.relative_to(tree)): path.read_text() for path in paths}


def room_pages():
    tree = pathlib.Path(TREE)
    paths = [tree / "SECURITY.md", *sorted((tree / "src").rglob("*.md")), *sorted((tree / "cuda").rglob("*.md"))]
    return {str(path.relative_to(tree)): path.read_text() for path in paths}


def block(*lines):
    return "\n".join(["```sh", *lines, "```", ""])


class Readme(unittest.TestCase):
    def test_every_command_could_run(self):
        pages = {page: (pathlib.Path(TREE) / page).read_text() for page in readme_commands.PAGES}
        # Pages without commands to run have commands in prose.
        pages |= {page: text for page, text in all_pages().items() if page not in pages and page != "CONTRIBUTING.md"}
        self.assertEqual(readme_commands.check_pages(pages, TREE, PROGRAMS), [])
        self.assertGreater(sum(len(readme_commands.parse(text)) for text in pages.values()), 40)
        self.assertGreater(sum(len(list(readme_commands.in_prose(text))) for text in pages.values()), 10)

    def test_every_page_with_commands_has_its_place_in_the_order(self):
        with_commands = {page for page, text in all_pages().items()
                         if page != "CONTRIBUTING.md" and readme_commands.parse(text)}
        self.assertEqual(with_commands, set(readme_commands.PAGES))
        self.assertEqual(len(readme_commands.PAGES), len(set(readme_commands.PAGES)))

    def test_every_link_leads_somewhere(self):
        self.assertEqual(dead_links(all_pages() | room_pages(), TREE), [])

    def test_the_first_page_is_short(self):
        readme = (pathlib.Path(TREE) / "README.md").read_text()
        self.assertLessEqual(len(readme.split()), 1300)
        self.assertTrue("](docs/dashboard.png)" in readme)
        self.assertLessEqual((pathlib.Path(TREE) / "docs/dashboard.png").stat().st_size, 300_000)


def packages(name):
    return re.sub(r"#.*", "", (pathlib.Path(TREE) / "tools" / name).read_text()).split()


def unused(names):
    """Packages with no header that src or cuda includes, and no program that the build or the demo names."""
    tree = pathlib.Path(TREE)
    sources = [path for room in ("src", "cuda") for path in (tree / room).rglob("*.[hc]*") if path.is_file()]
    included = {name for path in sources for name in re.findall(r"#include <(.+)>", path.read_text())}
    steps = [tree / "CMakeLists.txt", tree / "CMakePresets.json", *tree.glob("src/**/CMakeLists.txt"),
             *(tree / "tools" / name for name in ("build", "common.sh", "demo"))]
    words = {word for path in steps for word in re.findall(r"[\w+-]+", path.read_text().lower())}
    found = []
    for name in names:
        files = subprocess.run(["dpkg", "-L", name], capture_output=True, text=True, check=True).stdout.split()
        headers = {re.sub("^/usr/include/(x86_64-linux-gnu/)?", "", path) for path in files}
        programs = {pathlib.Path(path).name for path in files if path.startswith("/usr/bin/")}
        if not headers & included and not (programs | {name, name.replace("-", "")}) & words:
            found.append(name)
    return found


class Packages(unittest.TestCase):
    def test_the_demo_installs_what_build_and_programs_need(self):
        self.assertIn('\n"$ROOT/tools/setup"\n', (pathlib.Path(TREE) / "tools/demo").read_text())
        # The headers of Boost.JSON are in another package than its library; packaging/ asks for Python.
        self.assertEqual(set(unused(packages("packages.txt"))), {"libboost-json1.81-dev", "python3"})

    def test_a_package_of_the_tests_is_seen(self):
        of_tests = {"chromium", "libgtest-dev", "mmdebstrap", "python3-numpy", "zsh"}
        self.assertLessEqual(of_tests, set(packages("test-packages.txt")))
        self.assertEqual(set(unused(of_tests)), of_tests)


class Planted(unittest.TestCase):
    """What is wrong is seen; what it was made of is right."""

    def wrong(self, text, words):
        found = check(text)
        self.assertEqual(len(found), 1, found)
        self.assertIn(words, found[0])

    def test_right(self):
        self.assertEqual(check(block(
            "tacit ledger show --store demo-data/store   # with a comment",
            "tacitd --config config/demo.yaml --set store.shards=8 &",
            "tools/kafka start && tools/kafka topic clicks 4",
            "tacit inspect logs/*.gz \\", "    --output x.yaml",
            "tacitd --config x.yaml --check-config",
            "PATH=$PWD:$PATH", "kill %1 && wait")), [])

    def test_misspelt_option(self):
        self.wrong(block("tacit ledger show --stor demo-data/store"), "no option --stor")
        self.wrong(block("tacit inspect logs/*.gz \\", "  --outptu x.yaml"), "no option --outptu")
        self.wrong(block("tacitd --confg config/demo.yaml --config config/demo.yaml"), "--confg")
        self.wrong("Ask `tacit user forget ID --wiat`.", "no option --wiat")

    def test_misspelt_command(self):
        self.wrong(block("tacit legder show --store x"), "no command 'legder'")
        self.wrong(block("tacit ledger shwo --store x"), "no command 'shwo'")
        self.wrong(block("tacit ledger"), "no command ''")
        self.wrong("See `tacit legder show`.", "no command 'legder'")
        self.wrong(block("kubectl exec a-pod -- tacit legder show --store x"), "no command 'legder'")
        self.wrong(block("tactid --config config/demo.yaml"), "no program")

    def test_option_without_what_it_needs(self):
        self.wrong(block("tacit ledger show --store"), "needs a value")
        self.wrong(block("tacit checkpoint create --kind full"), "needs --url")

    def test_misspelt_tool(self):
        self.wrong(block("tools/kafak start"), "no tool tools/kafak")
        self.wrong(block("tools/kafka strat"), "does not name strat")
        self.wrong(block("tools/demo --frsh"), "does not name --frsh")

    def test_configuration(self):
        self.wrong(block("tacitd --config config/demmo.yaml"), "no file config/demmo.yaml")
        self.wrong(block("tacitd --config config/demo.yaml --set store.shard=8"), "store.shard")
        self.wrong(block("tacitd --config x.yaml", "tacit inspect a.gz --output x.yaml"),
                   "no file x.yaml")

    def test_what_could_be_overlooked(self):
        self.wrong("    $ tacit ledger show --store x\n", "outside")
        self.wrong("    tacitd --config x\n", "outside")
        self.wrong("<!-- left out: a reason -->\nWords.\n", "above no block")
        self.wrong("<!-- state: running -->\nWords.\n", "above no block")
        self.wrong("```sh\ntacit ledger show --store x\n", "without an end")
        self.wrong(block("# nothing"), "without a command")
        self.wrong(block("tacit ledger show \\"), "goes on after its block")

    def test_what_is_left_out_has_a_reason(self):
        commands = readme_commands.parse("<!-- left out: a GPU -->\n" + block("tools/test") +
                                         block("tools/demo"))
        self.assertEqual([c.left_out for c in commands], ["a GPU", ""])

    def test_what_operator_test_runs_is_not_run_here(self):
        commands = readme_commands.parse("<!-- state: running -->\n" + block("systemctl reload tacitd") +
                                         block("tools/demo"))
        self.assertEqual([c.text for c in commands], ["tools/demo"])

    def test_links_that_lead_nowhere(self):
        pages = {"docs/audit.md": "# A page\n\n[a](#a-page) [b](../README.md) [c](https://x.example/y)\n"}
        self.assertEqual(dead_links(pages, TREE), [])
        pages = {"docs/audit.md": "# A page\n\n[a](#another) [b](README.md) [c](../README.md#another)\n"}
        self.assertEqual(dead_links(pages, TREE), [
            "docs/audit.md: there is no heading #another", "docs/audit.md: there is no README.md",
            "docs/audit.md: there is no heading ../README.md#another"])


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    unittest.main(argv=sys.argv[:1])
