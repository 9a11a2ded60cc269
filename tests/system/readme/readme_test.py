"""Every command of README.md could run: programs, commands, options and keys are there.

readme_test.py TREE PROGRAMS. The whole page is run by tests/campaign/readme.
"""

import pathlib
import sys
import unittest

import readme_commands

TREE, PROGRAMS = sys.argv[1:3]


def check(text):
    return readme_commands.check_page(text, TREE, PROGRAMS)


def block(*lines):
    return "\n".join(["```sh", *lines, "```", ""])


class Readme(unittest.TestCase):
    def test_every_command_could_run(self):
        text = (pathlib.Path(TREE) / "README.md").read_text()
        self.assertEqual(check(text), [])
        self.assertGreater(len(readme_commands.parse(text)), 40)
        self.assertGreater(len(list(readme_commands.in_prose(text))), 10)


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
        self.wrong("```sh\ntacit ledger show --store x\n", "without an end")
        self.wrong(block("# nothing"), "without a command")
        self.wrong(block("tacit ledger show \\"), "goes on after its block")

    def test_what_is_left_out_has_a_reason(self):
        commands = readme_commands.parse("<!-- left out: a GPU -->\n" + block("tools/test") +
                                         block("tools/demo"))
        self.assertEqual([c.left_out for c in commands], ["a GPU", ""])


if __name__ == "__main__":
    unittest.TestCase.maxDiff = None
    unittest.main(argv=sys.argv[:1])
