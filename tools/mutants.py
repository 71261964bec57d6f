"""Change the code in small ways and count which changes no test notices: a mutation check.

    python tools/mutants.py                                      60 mutants of each package, drawn with a seed
    python tools/mutants.py src/stockade/core --sample 0         every mutant of one package (hours)
    python tools/mutants.py src/stockade/core/masks.py --seed 1  another sample, of one module

Cosmic Ray's operators make the mutants (`<` for `<=`, 4 for 3, `and` for `or`, a loop that never runs). They are made
in a temporary copy of the tree, never in the tree itself, so several checks may run at once. A mutant is caught when a
test of its package fails: first the test files that are named after its module or import it, then the others, in both
groups the quickest first. Slow tests and studies are left out.

A sample draws places in the code and then one change at each, because a plus sign alone can be changed in eleven ways.
What only a type checker, a reader or a clock could notice is no mutant: annotations, `frozen`, `slots` and `kw_only` of
dataclasses, `*` and `/` among parameters, `strict` of `zip`, caches.

The limit is in CPU seconds, ten times what the unchanged code takes and a minute more, so that a busy machine does not
count as a test that failed.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from itertools import islice
from pathlib import Path
from py_compile import PycInvalidationMode
from random import Random

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

PACKAGES = ("src/stockade/certificates", "src/stockade/attacks", "src/stockade/core")
CAUGHT, SURVIVED, TIMED_OUT = "caught", "survived", "timed out"
UNNOTICEABLE_KEYWORDS = {"dataclass": {"frozen", "slots", "kw_only"}, "zip": {"strict"}}
UNNOTICEABLE_DECORATORS = {"cache", "lru_cache", "override", "overload"}
MEMORY = 8 << 30  # bytes of address space: a mutant that grows without end must not take the machine with it
NO_TESTS = 5  # exit status of pytest when every test of the files is deselected
# The profile has no deadline that a busy machine could miss and tries the same examples every time.
PYTEST = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=ci", "-m", "not slow and not study")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed module: its path below the root, its source before and after the change."""

    module: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff with one line of context."""
        sources = self.before.splitlines(), self.after.splitlines()
        return "\n".join(unified_diff(*sources, fromfile=str(self.module), tofile="mutant", n=1, lineterm=""))


def behaviour(source: str) -> str:
    """A text that is equal for two sources whose difference no test should notice."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign() | ast.arg():
                node.annotation = ast.Constant(None)
            case ast.arguments():
                node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
                node.posonlyargs = node.kwonlyargs = []
                node.defaults += [default for default in node.kw_defaults if default is not None]
                node.kw_defaults = []
            case ast.Call(func=ast.Name(id=name)) if name in UNNOTICEABLE_KEYWORDS:
                node.keywords = [keyword for keyword in node.keywords if keyword.arg not in UNNOTICEABLE_KEYWORDS[name]]
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                node.body = [ast.Pass()]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                node.returns = None
                node.decorator_list = [
                    decorator
                    for decorator in node.decorator_list
                    if ast.unparse(decorator).split("(")[0] not in UNNOTICEABLE_DECORATORS
                ]
    return ast.dump(tree)


def is_mutant(after: str, behaviour_before: str) -> bool:
    """Whether the changed source is Python and behaves differently."""
    try:
        return behaviour(after) != behaviour_before
    except SyntaxError:
        return False


def places(source: str) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Line and column of whatever can be changed -> the changes there: an operator's name, which of its occurrences."""
    tree = get_ast(source)
    changes = defaultdict(list)
    for name in operator_names():
        operator_class = get_operator(name)
        if operator_class.arguments():  # an operator for names of variables that a user chooses
            continue
        operator = operator_class()
        positions = (position for node in ast_nodes(tree) for position in operator.mutation_positions(node))
        for occurrence, (start, _) in enumerate(positions):
            changes[start].append((name, occurrence))
    return dict(changes)


def draw_mutants(root: Path, modules: Sequence[Path], rng: Random, everything: bool = False) -> Iterator[Mutant]:
    """Mutants of the modules in random order: one change at each place, or every change there."""
    sources = {module: (root / module).read_text(encoding="utf-8") for module in modules}
    behaviours = {module: behaviour(source) for module, source in sources.items()}
    spots = [(module, changes) for module in modules for _, changes in sorted(places(sources[module]).items())]
    rng.shuffle(spots)
    for module, changes in spots:
        rng.shuffle(changes)
        mutants = (
            Mutant(module, sources[module], after)
            for name, occurrence in changes
            if (after := mutate_code(sources[module], get_operator(name)(), occurrence)) is not None
            if is_mutant(after, behaviours[module])
        )
        yield from mutants if everything else islice(mutants, 1)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A copy of the tree in which modules are changed and tests are run; CPU seconds of each test file, unchanged."""

    root: Path
    seconds: dict[Path, float] = field(default_factory=dict)

    @classmethod
    def copy(cls, root: Path, folder: Path) -> Sandbox:
        """Copy what tests may read, compiled so that a changed module is noticed whatever its time stamp."""
        shutil.copytree(root, folder, ignore=shutil.ignore_patterns(".*", "__pycache__", "build", "dist"))
        compileall.compile_dir(folder / "src", quiet=2, invalidation_mode=PycInvalidationMode.CHECKED_HASH)
        return cls(folder)

    def tests_of(self, module: Path) -> Path:
        """The folder of tests that mirrors the module's package: tests/core for src/stockade/core/masks.py."""
        folder = Path("tests", *module.parts[2:-1][:1])
        return folder if (self.root / folder).is_dir() else Path("tests")

    def measure(self, folder: Path) -> None:
        """Run every test file below the folder once; name and leave out those that fail without a mutant."""
        for path in sorted((self.root / folder).rglob("test_*.py")):
            test = path.relative_to(self.root)
            before = cpu_seconds()
            status = self.run([test], 3600)
            if status == 0:
                self.seconds[test] = cpu_seconds() - before
            elif status != NO_TESTS:
                print(f"{test} fails without a mutant (status {status}) and is left out.", flush=True)

    def groups(self, module: Path) -> list[list[Path]]:
        """The test files for the module, then the other test files of its package; in each group the quickest first."""
        folder = self.tests_of(module)
        dotted = ".".join(module.with_suffix("").parts[1:])
        parent, _, name = dotted.rpartition(".")
        imports = re.compile(rf"\b{re.escape(dotted)}\b|from {re.escape(parent)} import .*\b{name}\b")
        near: list[Path] = []
        rest: list[Path] = []
        for test in sorted(self.seconds, key=lambda test: self.seconds[test]):
            if test.is_relative_to(folder):
                text = (self.root / test).read_text(encoding="utf-8")
                (near if test.stem.startswith(f"test_{name}") or imports.search(text) else rest).append(test)
        return [group for group in (near, rest) if group]

    def test(self, mutant: Mutant) -> str:
        """Whether the tests of the mutant's package catch it."""
        path = self.root / mutant.module
        path.write_text(mutant.after, encoding="utf-8")
        try:
            for tests in self.groups(mutant.module):
                status = self.run(tests, 60 + 10 * sum(self.seconds[test] for test in tests))
                if status != 0:
                    return TIMED_OUT if status is None else CAUGHT
            return SURVIVED
        finally:
            path.write_text(mutant.before, encoding="utf-8")

    def run(self, tests: Sequence[Path], limit: float) -> int | None:
        """Exit status of pytest, which stops at the first failure; None when it took more than `limit` CPU seconds."""
        environment = {
            **os.environ,
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": str(self.root / "src"),  # goes before an editable install of the tree itself
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *PYTEST, *map(str, tests)],
            cwd=self.root,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: limit_process(round(limit)),
        )
        try:
            status = process.wait(timeout=300 + 10 * limit)  # for a mutant that waits without working
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        return None if status == -signal.SIGXCPU else status


def limit_process(seconds: int) -> None:
    """Limit CPU time and memory of this process, which is about to become pytest."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def cpu_seconds() -> float:
    """CPU seconds of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def check(sandbox: Sandbox, target: str, sample: int, seed: int) -> Counter[str]:
    """Test mutants of a package or module, print those that no test caught, count the outcomes."""
    path = sandbox.root / target
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    modules = [file.relative_to(sandbox.root) for file in files]
    for folder in sorted({sandbox.tests_of(module) for module in modules}):
        sandbox.measure(folder)
    mutants = draw_mutants(sandbox.root, modules, Random(f"mutants|{seed}|{target}"), everything=not sample)
    outcomes: Counter[str] = Counter()
    for number, mutant in enumerate(islice(mutants, sample or None), 1):
        outcome = sandbox.test(mutant)
        outcomes[outcome] += 1
        print(f"{target} {number}: {outcome}", flush=True)
        if outcome != CAUGHT:
            print(mutant.diff, flush=True)
    return outcomes


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line, run the check, print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=PACKAGES, help="packages or modules, as paths below the root")
    parser.add_argument("--sample", type=int, default=60, help="mutants of each target; 0 for all of them")
    parser.add_argument("--seed", type=int, default=0, help="which sample")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent, help="the tree to copy")
    options = parser.parse_args(arguments)
    for target in options.targets:
        if not (options.root / target).exists():
            parser.error(f"{options.root} has no {target}. Name a package or module below it, such as {PACKAGES[-1]}.")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        sandbox = Sandbox.copy(options.root, Path(folder, "tree"))
        scores = {target: check(sandbox, target, options.sample, options.seed) for target in options.targets}
    if len(scores) > 1:
        scores["together"] = sum(scores.values(), Counter())
    print("\n| code | mutants | caught | survived | timed out | score |\n|---|---|---|---|---|---|")
    for target, outcomes in scores.items():
        made = outcomes.total()
        print(f"| {target} | {made} | ", end="")
        print(*(outcomes[outcome] for outcome in (CAUGHT, SURVIVED, TIMED_OUT)), sep=" | ", end=" | ")
        print(f"{outcomes[CAUGHT] / made:.0%} |" if made else "nothing to change |")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the copy is removed
    main()
