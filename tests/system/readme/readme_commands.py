"""The commands of README.md and docs/: finds them, checks that they could run, runs them.

A command is a line of a block that begins with ```sh. The blocks of all pages run one after the other, in the
order of PAGES. A comment above a block,

    <!-- left out: REASON -->

keeps a block from being run, and

    <!-- state: NAME -->

leaves it to operator_test.py, which runs it against a service. Commands in prose stand between backticks; they are
checked, not run.
"""

import dataclasses
import functools
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

# A page needs what the pages before it have made. readme_test compares the list with the pages that have commands.
PAGES = (
    "README.md",
    "docs/using/kafka.md",
    "docs/operating/replicas.md",
    "docs/start.md",
    "docs/audit.md",
    "docs/using/statement.md",
    "docs/using/criteo.md",
    "docs/using/judged-model.md",
    "docs/using/pipe.md",
    "docs/using/recommending.md",
    "docs/using/gpu.md",
    "docs/operating/install.md",
    "docs/internals/release.md",
    "docs/operating/kubernetes.md",
    "docs/operating/upgrade.md",
    "docs/operating/checkpoints.md",
    "docs/operating/versions.md",
    "docs/using/querying.md",
    "docs/operating/shards.md",
    "docs/operating/restore.md",
    "docs/operating/users.md",
    "docs/using/changing-data.md",
)
PROGRAMS = ("tacit", "tacitd")
SHELL_WORDS = ("apt", "cp", "curl", "duckdb", "kill", "kubectl", "mv", "podman", "wait")  # all else that pages may use
MARK = re.compile(r"^ *<!-- (left out|state): (.+) -->$")
IN_PROSE = re.compile(r"`((?:tacitd?|tools/[a-z-]+)(?: [^`]+)?)`")


@dataclasses.dataclass
class Command:
    line: int
    text: str
    left_out: str = ""  # the reason why it is not run
    page: str = ""

    @property
    def place(self):
        return f"{self.page}:{self.line}" if self.page else str(self.line)

    @property
    def background(self):
        return split(self.text)[-1:] == ["&"]


class Wrong(Exception):
    pass


def split(text):
    """Words as the shell sees them; &, && and ; are words of their own."""
    words = shlex.shlex(text, posix=True, punctuation_chars="&;|")
    words.whitespace_split = True
    words.commenters = "#"
    return list(words)


def parse(text, page=""):
    """All commands of a page, in its order, except those of operator_test. Raises Wrong where one could be overlooked."""
    commands, mark, block, pending = [], None, None, None
    begin = f"{page}:" if page else ""
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if block is None:
            if bare == "```sh":
                block, found = (number, *(mark.groups() if mark else ("", ""))), []
            elif mark:
                raise Wrong(f"{begin}{number}: '{mark.group(1)}' stands above no block of commands")
            elif re.match(r"^ {4,}(\$ |tacitd? |tools/|curl )", line):
                raise Wrong(f"{begin}{number}: a command outside of a ```sh block: {bare}")
            mark = MARK.match(line)
            continue
        if bare == "```":
            if pending:
                raise Wrong(f"{begin}{number}: the command of line {pending.line} goes on after its block")
            if not found:
                raise Wrong(f"{begin}{block[0]}: a block without a command")
            if block[1] != "state":
                commands += found
            block = mark = None
            continue
        if pending:
            pending.text += " " + bare.rstrip("\\").rstrip()
        elif not bare or bare.startswith("#"):
            continue
        else:
            pending = Command(number, bare.rstrip("\\").rstrip(), block[2], page)
        if not bare.endswith("\\"):
            found.append(pending)
            pending = None
    if block is not None:
        raise Wrong(f"{begin}{block[0]}: a block without an end")
    return commands


def in_prose(text, page=""):
    """Commands between backticks, outside of blocks."""
    outside = re.sub(r"(?ms)^ *```.*?^ *```$", lambda found: "\n" * found.group().count("\n"), text)
    for number, line in enumerate(outside.splitlines(), 1):
        for found in IN_PROSE.finditer(line):
            yield Command(number, found.group(1), page=page)


def simple_commands(words):
    command = []
    for word in words + [";"]:
        if word in ("&", "&&", ";", "|"):
            if command:
                yield command
            command = []
        else:
            command.append(word)


class Checker:
    """Holds commands to what the programs of a folder say of themselves with --help."""

    def __init__(self, tree, programs):
        self.tree = pathlib.Path(tree)
        self.programs = pathlib.Path(programs)
        self.made = set()  # files that commands before have written

    @functools.lru_cache(maxsize=None)
    def help(self, *words):
        run = subprocess.run([self.programs / words[0], *words[1:], "--help"], text=True,
                             capture_output=True)
        if run.returncode != 0:
            raise Wrong(f"{' '.join(words)} --help ends with status {run.returncode}: {run.stderr}")
        return run.stdout

    def subcommands(self, *words):
        part = self.help(*words).partition("\nSubcommands:\n")[2].partition("\n\n")[0]
        return re.findall(r"^  ([a-z]\S*)", part, re.M)

    def options(self, *words):
        """Options by name: whether they take a value, and whether they must be there."""
        found = {}
        for names, kind in re.findall(r"^ {2,4}(-\S+)(.*)$", before_examples(self.help(*words)), re.M):
            for name in names.split(","):
                found[name] = (bool(re.match(r" (TEXT|UINT|INT|FLOAT)", kind)),
                               "REQUIRED" in kind, names)
        return found

    def check_program(self, words, whole):
        path = [words[0]]
        rest = words[1:]
        while True:
            inner = self.subcommands(*path)
            if not inner:
                break
            if rest and rest[0] in inner:
                path.append(rest.pop(0))
            elif rest and rest[0].startswith("-"):
                break  # `tacit evaluate --config`
            elif whole or rest and re.match("^[a-z]+$", rest[0]):
                raise Wrong(f"'{' '.join(path)}' has no command '{' '.join(rest[:1])}'")
            else:
                break
        known = self.options(*path)
        given = set()
        for i, word in enumerate(rest):
            if not word.startswith("--"):
                continue
            name, equals, _ = word.partition("=")
            if name not in known:
                raise Wrong(f"'{' '.join(path)}' has no option {name}")
            takes, _, names = known[name]
            given.add(names)
            nothing = i + 1 == len(rest) or rest[i + 1].startswith("--")
            if whole and takes and not equals and nothing:
                raise Wrong(f"{name} of '{' '.join(path)}' needs a value")
        if whole:
            for name, (_, required, names) in known.items():
                if required and names not in given:
                    raise Wrong(f"'{' '.join(path)}' needs {name}")
        return rest

    def check_config(self, words):
        config = value_of(words, "--config")
        if config is None or config in self.made:
            return
        if not (self.tree / config).is_file():
            raise Wrong(f"there is no file {config}")
        sets = []
        if "--set" in words:
            for word in words[words.index("--set") + 1:]:
                if word.startswith("--"):
                    break
                sets += ["--set", word]
        self.load(config, *sets)

    @functools.lru_cache(maxsize=None)
    def load(self, config, *sets):
        with tempfile.TemporaryDirectory() as folder:
            stand_ins(self.tree / config, pathlib.Path(folder))
            run = subprocess.run([self.programs / "tacitd", "--config", self.tree / config, *sets,
                                  "--check-config"], cwd=folder, text=True, capture_output=True)
        if run.returncode != 0:
            raise Wrong(f"tacitd --check-config refuses {config} {' '.join(sets)}: {run.stderr}")

    def check_tool(self, words):
        tool = self.tree / words[0]
        if not os.access(tool, os.X_OK):
            raise Wrong(f"there is no tool {words[0]}")
        text = tool.read_text()
        described = re.match(r'(?s)#![^\n]*\n"""(.*?)"""', text)  # a tool in Python
        head = described.group(1) if described else "".join(
            line for line in text.splitlines(True) if line.startswith("#"))
        for i, word in enumerate(words[1:]):
            is_command = i == 0 and re.match("^[a-z]+$", word)
            if (is_command or word.startswith("--")) and not re.search(
                    rf"(?<![\w-]){re.escape(word)}(?![\w-])", head):
                raise Wrong(f"the head of {words[0]} does not name {word}")

    def check(self, command, whole=True):
        try:
            for words in simple_commands(split(command.text)):
                while words and re.match(r"^[A-Z_]+=", words[0]):
                    words = words[1:]
                if words[:2] == ["kubectl", "exec"]:
                    words = words[words.index("--") + 1:]  # what the pod runs
                if not words or words[0] in SHELL_WORDS:
                    continue
                if words[0].startswith("tools/"):
                    self.check_tool(words)
                elif words[0] in PROGRAMS:
                    rest = self.check_program(words, whole)
                    if whole:
                        self.check_config(rest)
                        self.made.add(value_of(rest, "--output"))
                else:
                    raise Wrong(f"'{words[0]}' is no program that pages may use")
        except ValueError as error:
            raise Wrong(f"{command.place}: {command.text}: {error}") from error
        except Wrong as wrong:
            raise Wrong(f"{command.place}: {command.text}: {wrong}") from wrong


def stand_ins(config, folder):
    """Makes, in a folder, the files that a configuration wants to be there before it is read."""
    for kind, pattern in re.findall(r"^  (files?): \[?([^\s\]]+)", config.read_text(), re.M):
        path = folder / pattern.replace("*", "0")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n2\n" if kind == "file" else "")


def before_examples(text):
    return text.partition("\nExample")[0]


def value_of(words, option):
    for i, word in enumerate(words):
        if word == option and i + 1 < len(words):
            return words[i + 1]
        if word.startswith(option + "="):
            return word[len(option) + 1:]
    return None


def check_pages(pages, tree, programs):
    """Every sentence that is wrong with the commands of pages: texts by name, in the order in which they run."""
    found = []
    try:
        commands = [command for page, text in pages.items() for command in parse(text, page)]
    except Wrong as wrong:
        return [str(wrong)]
    prose = [command for page, text in pages.items() for command in in_prose(text, page)]
    checker = Checker(tree, programs)
    for command, whole in [(c, True) for c in commands] + [(c, False) for c in prose]:
        try:
            checker.check(command, whole)
        except Wrong as wrong:
            found.append(str(wrong))
    return found


# Waits until a daemon that was started answers. It is asked where its configuration lets it listen.
PRELUDE = r"""
set -m
LOGS=$1
jobs_end() { trap - EXIT; kill $(jobs -p) 2>/dev/null; wait; }
trap jobs_end EXIT
ready() {
  for _ in $(seq 300); do
    curl -fs -o /dev/null "http://$1/readyz" && return
    kill -0 "$2" 2>/dev/null || return 1
    sleep 0.2
  done
  return 1
}
ended() {  # PLACE STATUS BEGUN LOG TEXT
  printf '%-34s  %4s s  %s\n' "$1" "$((SECONDS - $3))" "$5"
  [ "$2" -eq 0 ] && return
  printf '%s: ended with status %s\n' "$1" "$2"
  tail -n 40 "$4"
  exit 1
}
"""


def script(commands):
    """A program for bash that runs the commands in one shell, and ends at the first that fails."""
    lines = [PRELUDE]
    for i, command in enumerate(commands):
        text = shlex.quote(command.text)
        if command.left_out:
            lines.append(f"printf '%-34s  left out  %s (%s)\\n' {command.place} {text} "
                         f"{shlex.quote(command.left_out)}")
            continue
        log = f'"$LOGS/{i:03}.log"'
        lines += ["begun=$SECONDS", "{", command.text, f"}} >{log} 2>&1 </dev/null", "status=$?"]
        if command.background:
            lines.append(f"ready {listens(command)} $! || status=1")
        lines.append(f"ended {command.place} $status $begun {log} {text}")
    return "\n".join(lines) + "\n"


def listens(command):
    words = split(command.text)
    for word in words:
        if word.startswith("serve.listen="):
            return word.partition("=")[2]
    config = pathlib.Path(value_of(words, "--config")).read_text()
    found = re.search(r"^ +listen: (\S+)", config, re.M)
    return found.group(1) if found else "127.0.0.1:8980"


def main():
    """readme_commands.py run LOGS: runs the commands of the pages of the tree that it is started in."""
    _, _, logs = sys.argv
    commands = [command for page in PAGES for command in parse(pathlib.Path(page).read_text(), page)]
    pathlib.Path(logs).mkdir(parents=True, exist_ok=True)
    path = pathlib.Path(logs) / "commands.sh"
    path.write_text(script(commands))
    status = subprocess.run(["bash", path, logs]).returncode
    left_out = sum(bool(command.left_out) for command in commands)
    if status == 0:
        print(f"{len(commands) - left_out} commands ran, {left_out} were left out")
    sys.exit(status)


if __name__ == "__main__":
    main()
