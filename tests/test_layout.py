"""The shape of the code: steps, producers, sizes, names, and the words that the project does not use."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "labctl"
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
STEPS = (
    ("prereg/load.py", "load_preregistration"),
    ("packet/freeze.py", "freeze_packet"),
    ("packet/review.py", "require_reviews"),
    ("marker.py", "consume_marker"),
    ("campaign/controller.py", "run_campaign"),
    ("leg/run.py", "run_leg"),
    ("seal/write.py", "seal_run"),
    ("analyze/sealed_run.py", "analyze_run"),
    ("report/text.py", "render_report"),
)
READERS = (
    ("packet/opening.py", "open_packet"),
    ("marker.py", "open_consumed_packet"),
    ("seal/verify.py", "open_sealed_run"),
    ("seal/analysis.py", "open_analysis"),
)
PRODUCERS = {
    "ReviewedPacket": "packet/review.py",
    "ConsumedPacket": "marker.py",
    "SealedRun": "seal/verify.py",
    "SealedAnalysis": "seal/analysis.py",
    "PreflightPassed": "campaign/preflight.py",
    "ClosedRun": "campaign/controller.py",
    "Verdict": "analyze/sealed_run.py",
    "Packet": "packet/freeze.py",
}
FORBIDDEN_NAMES = re.compile(r"(util|utils|helper|helpers|manager|base|common|misc)\Z")
FORBIDDEN_SUFFIX = re.compile(r".(Manager|Helper|Util|Handler|Service|Data|Info)\Z")
MODULE_LIMIT = 300
STANDALONE_LIMIT = 1200
FUNCTION_LIMIT = 40


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _name(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body
    has_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    first = body[1] if has_docstring and len(body) > 1 else body[0]
    return (function.end_lineno or first.lineno) - first.lineno + 1


@pytest.mark.parametrize(("module", "function"), STEPS + READERS)
def test_each_step_and_each_reader_is_where_the_table_says(module: str, function: str) -> None:
    names = {node.name for node in _tree(PACKAGE / module).body if isinstance(node, ast.FunctionDef)}
    assert function in names


@pytest.mark.parametrize(("kind", "producer"), PRODUCERS.items())
def test_each_type_has_one_producer(kind: str, producer: str) -> None:
    makers = {
        _name(path)
        for path in MODULES
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == kind
    }
    assert makers <= {producer}


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_modules_keep_their_size(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= (STANDALONE_LIMIT if path.parent.name == "standalone" else MODULE_LIMIT)


@pytest.mark.parametrize("path", MODULES + TESTS, ids=str)
def test_functions_keep_their_size(path: Path) -> None:
    long = {node.name: _body_lines(node) for node in _functions(_tree(path)) if _body_lines(node) > FUNCTION_LIMIT}
    assert not long


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_names_say_what_a_thing_is(path: Path) -> None:
    classes = [node.name for node in ast.walk(_tree(path)) if isinstance(node, ast.ClassDef)]
    assert not [name for name in classes if FORBIDDEN_SUFFIX.search(name)]
    assert not [part for part in path.relative_to(PACKAGE).with_suffix("").parts if FORBIDDEN_NAMES.match(part)]


def test_every_exception_is_caught_by_name_but_at_the_legs_entry() -> None:
    places = [
        _name(path)
        for path in MODULES
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in ("Exception", "BaseException"))
        and ast.unparse(node.body[-1]) != "raise"  # which tidies up and hides nothing
    ]
    assert places in ([], ["leg/run.py"])


def test_every_test_asserts_something() -> None:
    silent = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in TESTS
        for function in _functions(_tree(path))
        if function.name.startswith("test_") and not _asserts(function)
    ]
    assert not silent


def _asserts(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call) and ("raises" in ast.unparse(node.func) or "assert" in ast.unparse(node.func)):
            return True
    return False


def test_gates_never_use_the_assert_statement() -> None:
    places = [
        _name(path) for path in MODULES for node in ast.walk(_tree(path)) if isinstance(node, ast.Assert)
    ]  # `python -O` removes them
    assert not places


def test_the_readme_shows_the_help_of_the_command() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "labctl", "--help"], capture_output=True, text=True, check=True, env={"COLUMNS": "80"}
    ).stdout
    usage = shown[shown.index("Options:") :].strip()
    assert usage in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_page_and_decision_is_listed_and_decisions_are_numbered_once() -> None:
    docs = ROOT / "docs"
    listed = re.findall(r"\]\(([a-z0-9/-]+\.md)\)", (docs / "README.md").read_text(encoding="utf-8"))
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md") if path.name != "README.md"]
    assert sorted(listed) == sorted(pages)
    numbers = sorted(int(path.name[:4]) for path in (docs / "adr").glob("*.md"))
    assert numbers == list(range(len(numbers)))


def test_the_examples_name_no_other_place_than_their_own() -> None:
    """Sealed bytes hold paths and host names, so the examples are made in one neutral place."""
    allowed = re.compile(
        rb"/(srv/labctl|opt/torch|usr|lib|lib64|bin|sbin|etc|proc|sys|dev|run|tmp|v1|health|metrics|version|docs|inference)\b"
    )
    coded = re.compile(rb'"[A-Za-z0-9+/]{24,}={0,2}"')  # bytes of tensors, as base64
    found = set()
    for path in sorted((ROOT / "runs.example").rglob("*")):
        if path.is_file() and path.suffix != ".bin":
            text = coded.sub(b'""', path.read_bytes())
            for match in re.finditer(rb"(?<![\w/.}\]:*-])/[a-z][\w.-]*(?:/[\w.-]+)+", text):
                if not allowed.match(match[0]):
                    found.add((path.name, match[0][:60]))
    assert not found
