"""Manual pages and completions: each command and option of --help is in all of them. Pages that are printed.

The commands and options are found here by a rule of their own, and not by the tool's.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TREE, PROGRAMS = (pathlib.Path(argument) for argument in sys.argv[1:3])


def say(*command, **options):
    return subprocess.run(command, text=True, capture_output=True, check=True, **options).stdout


def commands(*path):
    """Each command's path, with the options and the names below that --help has."""
    text = say(PROGRAMS / path[0], *path[1:], "--help")
    table = re.split(r"(?m)^(?=[A-Z]\w*:$)", text)
    options, below = set(), []
    for part in re.split(r"(?m)^\S.*:$|^\[Option Group.*$", text):
        for line in part.splitlines():
            if found := re.match(r" {2,4}(--?[\w-]+(?:,--?[\w-]+)*)(?: |$)", line):
                options |= set(found.group(1).split(","))
    for part in table:
        if part.startswith("Subcommands:"):
            below = re.findall(r"(?m)^  (\S+)", part)
    yield path, options, below
    for name in below:
        yield from commands(*path, name)


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.out = pathlib.Path(cls.folder.name)
        say(TREE / "tools/manual", "--programs", PROGRAMS, "--out", cls.out)
        cls.all = [*commands("tacit"), *commands("tacitd")]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_the_list_is_no_empty_one(self):
        names = {" ".join(path): options for path, options, _ in self.all}
        self.assertIn("--store", names["tacit ledger export"])  # of a group of options
        self.assertIn("--until-end", names["tacitd"])
        self.assertGreater(len(names), 40)

    def page(self, path):
        section = 8 if path[0] == "tacitd" else 1
        return self.out / f"man/man{section}/{'-'.join(path[:2])}.{section}"

    def test_pages_have_all_and_are_laid_out_without_a_warning(self):
        for path, options, below in self.all:
            text = re.sub(r"\\f[BR]", "", self.page(path).read_text())
            text = text.replace("\\-", "-").replace("\\e", "\\")
            if len(path) > 2:
                start = text.index(f".SS {' '.join(path[1:])}\n")
                end = text.find("\n.S", start + 1)
                text = text[start : end if end > 0 else None]
            for word in options:
                self.assertRegex(text, rf"(?<![\w-]){re.escape(word)}(?![\w-])", f"{path}")
            for word in below:
                head = f"\n{path[0]}-{word}(1)\n" if len(path) == 1 else f"\n.SS {path[1]} {word}\n"
                self.assertIn(head, text)
        for page in sorted(self.out.glob("man/*/*")):
            run = subprocess.run(["groff", "-man", "-ww", "-z", page], text=True, capture_output=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""), page)

    def names(self, page, title):
        """The entries of one section of a page."""
        text = (self.out / "man" / page).read_text().replace("\\-", "-")
        section = re.search(rf"(?s)\n\.SH {title}\n(.*?)\n\.SH ", text).group(1)
        return {name for names in re.findall(r"(?m)^\.TP\n\\fB(.+)\\fR$", section) for name in names.split(", ")}

    def test_pages_have_each_variable_of_the_environment_that_the_code_reads(self):
        files = [file.read_text() for file in TREE.glob("src/**/*.cc") if "getenv(" in file.read_text()]
        read = {name for text in files for name in re.findall(r'"([A-Z]+_[A-Z_]+|(?<=getenv\(")[A-Z]+)"', text)}
        self.assertGreater(len(read), 8)  # TACIT_TEST_NO_AVX512 has a digit, and is no reader's
        told = self.names("man8/tacitd.8", "ENVIRONMENT") | self.names("man1/tacit.1", "ENVIRONMENT")
        self.assertEqual(told - {"TACIT_*"}, read)

    def test_pages_have_signals_files_and_exit_statuses(self):
        handled = {name for file in TREE.glob("src/**/*.cc")
                   for name in re.findall(r"(?:sigaddset\(&set, |signal\()(SIG\w+)", file.read_text())}
        self.assertEqual(self.names("man8/tacitd.8", "SIGNALS"), handled)
        self.assertLessEqual(self.names("man1/tacit.1", "SIGNALS"), handled)
        service = (TREE / "packaging/tacit.yaml").read_text() + (TREE / "systemd/tacitd.service").read_text()
        keys = (TREE / "docs/reference/config.md").read_text()
        for path in self.names("man8/tacitd.8", "FILES"):
            store, suffix = re.fullmatch(r"(/[\w./-]*?(?:/store)?)(\.checkpoints|\.dead-letters\.jsonl)?", path).groups()
            self.assertIn(store, service)
            self.assertIn(f"`store.path` + `{suffix}`" if suffix else "", keys)
        installed = (TREE / "packaging/CMakeLists.txt").read_text()
        for path in self.names("man1/tacit.1", "FILES"):
            self.assertIn(path.replace("/usr/share/doc/tacit/", "config/"), installed)
        codes = set(re.findall(r"(?m)^  k\w+ = (\d),", (TREE / "src/console/exit_code.h").read_text()))
        self.assertGreater(len(codes), 4)
        for path, _, _ in self.all:
            page = self.page(path).relative_to(self.out / "man")
            self.assertEqual(self.names(page, "EXIT STATUS"), codes, page)

    def test_files_that_are_printed_are_what_the_command_in_their_first_line_prints(self):
        printed = set()
        for file in [*TREE.glob("docs/**/*.md"), *TREE.glob("config/*.yaml"), *TREE.glob("schemas/*.yaml")]:
            text, name = file.read_text(), str(file.relative_to(TREE))
            if found := re.match(r"\W+tacitd (--describe .+) > (\S+)", text):
                printed.add(name)
                self.assertEqual(found.group(2), name)
                new = say(PROGRAMS / "tacitd", *found.group(1).split())
                self.assertTrue(new == text, f"write {name} anew: {found.group(0)}")
        pages = ("config.md", "http.md", "metrics.md")
        self.assertLessEqual({"config/reference.yaml", "schemas/openapi.yaml", *(f"docs/reference/{page}" for page in pages)}, printed)

    def test_the_configuration_has_a_page_with_every_key(self):
        text = (self.out / "man/man5/tacit.yaml.5").read_text().replace("\\-", "-")
        keys = re.findall(r"(?m)^\| `([^`]+)` \|", (TREE / "docs/reference/config.md").read_text())
        self.assertGreater(len(keys), 150)
        for key in keys:
            self.assertTrue(re.search(rf"(?m)^\\fB(learners\[\]\.)?{re.escape(key)}\\fR", text), key)

    def bash(self, *words):
        """What bash completes the last word to, with the script that is installed."""
        quoted = " ".join(f"'{word}'" for word in words)
        script = f"""source {self.out}/bash/{words[0]}
COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}
_{words[0]}
printf '%s\\n' "${{COMPREPLY[@]}}\""""
        return set(say("bash", "-uc", script, cwd=self.folder.name).split())

    def test_bash_completes_commands_options_and_values(self):
        for path, options, below in self.all:
            self.assertEqual(self.bash(*path, "-"), options, path)
            if below:
                self.assertEqual(self.bash(*path, ""), set(below), path)
        self.assertEqual(self.bash("tacit", "le"), {"ledger"})
        self.assertEqual(self.bash("tacit", "audit", "--kind", "m"), {"membership"})
        (self.out / "shop.yaml").touch()
        self.assertEqual(self.bash("tacitd", "--config", "sh"), {"shop.yaml"})
        # A word that is a command stays a value behind an option, and below another command.
        self.assertEqual(self.bash("tacit", "token", "new", "led"), set())

    def test_zsh_and_fish_have_the_same(self):
        zsh = {name: (self.out / f"zsh/_{name}").read_text() for name in ("tacit", "tacitd")}
        fish = {name: (self.out / f"fish/{name}.fish").read_text() for name in ("tacit", "tacitd")}
        for path, options, below in self.all:
            function = "_" + "_".join(path).replace("-", "_")
            text = zsh[path[0]].partition(f"\n{function}() {{\n")[2].partition("\n}\n")[0]
            self.assertTrue(text, function)
            self.assertEqual(set(re.findall(r"(?m)^    '\*(--?[\w-]+)\[", text)), options, path)
            self.assertEqual(re.findall(r"(?m)^    '([a-z][\w-]*):", text), below, path)
            how = "only" if below else "below"
            where = f" -n '{' '.join([f'__tacit_at {how}', *path[1:]])}'" if path[0] == "tacit" else ""
            lines = [line for line in fish[path[0]].splitlines()
                     if re.match(rf"complete -c {path[0]}(?: -f)?{re.escape(where)} -", line)]
            found = set()
            for line in lines:
                head = line.partition(" -d ")[0]
                found |= {f"--{word}" for word in re.findall(r" -l (\S+)", head)}
                found |= {f"-{word}" for word in re.findall(r" -s (\S+)", head)}
            self.assertEqual(found, options, path)
            named = [line.partition(" -a ")[2].split()[0] for line in lines if f" -f{where} -a" in line]
            self.assertEqual(named, below, path)

    def test_zsh_and_fish_read_them(self):
        for name in ("tacit", "tacitd"):
            say("zsh", "-n", self.out / f"zsh/_{name}")
            say("fish", "-n", self.out / f"fish/{name}.fish")
        asked = say("fish", "--no-config", "-c",
                    f"source {self.out}/fish/tacit.fish; complete -C 'tacit ledger '")
        below = next(below for path, _, below in self.all if path == ("tacit", "ledger"))
        self.assertEqual({line.split("\t")[0] for line in asked.splitlines()}, set(below))

    def test_a_help_of_another_form_is_refused(self):
        """The planted fault: a program whose help the tool would pass over."""
        folder = self.out / "planted"
        folder.mkdir()
        for name in ("tacit", "tacitd"):
            program = folder / name
            program.write_text('#!/bin/sh\nprintf "About\\nUsage: x [OPTIONS]\\n\\nOptions:\\n    ?\\n"\n')
            program.chmod(0o755)
        run = subprocess.run([TREE / "tools/manual", "--programs", folder, "--out", folder / "out"],
                             text=True, capture_output=True)
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("a line of no known form", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
