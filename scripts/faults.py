"""Run the fault suite at full counts and write docs/fault-results.md: `python scripts/faults.py [SECTION ...]`.

Without a section all of them run, which takes about an hour. What each section found is kept in .labctl/faults/,
so that one section can be repeated; each says when and on which commit it ran. `document` only writes it again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP))

from labctl.seal.verify import SealedRun, open_sealed_run  # noqa: E402 (scripts and tests are importable from the top)
from scripts.mutation_gate import gate  # noqa: E402
from tests.fakes.campaign_repository import CampaignRepository, command_line  # noqa: E402
from tests.fakes.component_run import ComponentRun  # noqa: E402
from tests.fakes.probe_run import ProbeRun  # noqa: E402
from tests.fakes.run_builder import RunBuilder  # noqa: E402
from tests.faults.crash.injection import Target, every_injection, inject_into_marker, inject_into_seal  # noqa: E402
from tests.faults.crash.kills import kill_campaigns  # noqa: E402
from tests.faults.crash.power import lose_power_while_consuming, lose_power_while_sealing  # noqa: E402
from tests.faults.crash.races import race  # noqa: E402
from tests.faults.probe_classes import FAULTS, RANKS, class_of  # noqa: E402 (see above)
from tests.tamper.bench import Bench, Level, Tally, try_mutations  # noqa: E402
from tests.tamper.mutations import KINDS_OF_LEGS, KINDS_OF_TEXT  # noqa: E402

FOUND = TOP / ".labctl" / "faults"
EXAMPLE = TOP / "runs.example" / "quickstart"
DOCUMENT = TOP / "docs" / "fault-results.md"
KILLS = 200
RACERS, RACES = 64, 20
MUTATIONS = 2000
SEED = 7
Rows = list[list[str]]
Section = Callable[[Path], list[Rows]]


def codes(_scratch: Path) -> list[Rows]:
    """Every code raised by one fault alone, every known fault answered, every crash and tamper test: pytest's count."""
    tests = ["tests/test_faults.py", "tests/faults", "tests/tamper", "tests/unit/campaign/test_witness.py"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *tests], cwd=TOP, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(done.stdout)
    return [[["tests", "outcome"], [" ".join(tests), done.stdout.splitlines()[-1].strip("= ")]]]


def kills(scratch: Path) -> list[Rows]:
    """SIGKILL at random times of a campaign; after each a legal state, no process left, no second consumption."""
    states = kill_campaigns(scratch, KILLS, SEED)
    return [[["state after the kill", "kills"], *_counted(states), ["all", str(states.total())]]]


def races(scratch: Path) -> list[Rows]:
    """Processes that consume one packet at one moment."""
    rounds = [race(scratch / str(number), RACERS) for number in range(RACES)]
    winners = Counter(found["won"] for found in rounds)
    return [[["winners", "races"], *([str(won), str(count)] for won, count in sorted(winners.items()))]]


def injections_into_the_marker(scratch: Path) -> list[Rows]:
    """The n-th call of each kind on the paths of marker and ledger fails or kills, until everything runs through."""
    return _injected(inject_into_marker, scratch)


def injections_into_the_seal(scratch: Path) -> list[Rows]:
    """The same on every path of a run that is sealed."""
    return _injected(inject_into_seal, scratch)


def losses_of_power(scratch: Path) -> list[Rows]:
    """Every state that POSIX allows after each system call of consuming and of sealing."""
    found = {"consuming": lose_power_while_consuming, "sealing": lose_power_while_sealing}
    rows = []
    for name, lose in found.items():
        (scratch / name).mkdir()
        rows += [[name, *row] for row in _counted(lose(scratch / name))]
    return [[["while", "found", "states"], *rows]]


def classes_of_a_probe(scratch: Path) -> list[Rows]:
    """Every class of a probe, produced by real ranks of which one has the fault; two ranks over gloo."""
    rows, wrong = [], []
    for number, (name, fault) in enumerate(FAULTS.items()):
        found = class_of(scratch / str(number), name)
        rows.append([name, found.stage_class, f"{found.clean}/{RANKS}"])
        wrong += [] if (found.stage_class, found.clean) == (fault.stage_class, fault.clean) else [rows[-1]]
    if wrong:
        raise SystemExit(f"classified otherwise: {wrong}")
    return [[["fault of rank 1", "class", "clean teardowns"], *rows]]


def mutations_of_a_synthetic_run(scratch: Path) -> list[Rows]:
    """Machine-made changes of a run of four starts with known numbers and a phase stop."""
    return _mutated(RunBuilder().seal(scratch / "sealed"), scratch / "bench")


def mutations_of_the_quickstart(scratch: Path) -> list[Rows]:
    """Machine-made changes of the sealed example, or where there is none, of a quickstart run measured for this."""
    return _mutated(open_sealed_run(EXAMPLE) if EXAMPLE.is_dir() else _quickstart(scratch), scratch / "bench")


def mutations_of_runs_on_cards(scratch: Path) -> list[Rows]:
    """The same on a synthetic run of a component on two cards, and on one of a probe of four ranks."""
    kinds = (*KINDS_OF_TEXT, *KINDS_OF_LEGS)
    component = _mutated(ComponentRun().seal(scratch / "component"), scratch / "one", kinds)
    return component + _mutated(ProbeRun().seal(scratch / "probe"), scratch / "other", KINDS_OF_TEXT)


def mutation_gate(scratch: Path) -> list[Rows]:
    """The code broken in named ways; the tests named for each must turn red."""
    found = gate(scratch)
    if not all(noticed for _, noticed in found):
        raise SystemExit(f"still green: {found}")
    return [[["break", "its tests"], *([name, "red"] for name, _ in found)]]


SECTIONS: tuple[Section, ...] = (
    codes,
    races,
    injections_into_the_marker,
    injections_into_the_seal,
    losses_of_power,
    mutation_gate,
    classes_of_a_probe,
    mutations_of_a_synthetic_run,
    mutations_of_the_quickstart,
    mutations_of_runs_on_cards,
    kills,
)


def run_section(section: Section) -> None:
    """Run one section and keep what it found."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="labctl-faults-") as scratch:
        tables = section(Path(scratch))
    found = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "commit": _git("rev-parse", "--short=12", "HEAD"),
        "seconds": round(time.monotonic() - started),
        "tables": tables,
    }
    FOUND.mkdir(parents=True, exist_ok=True)
    (FOUND / f"{section.__name__}.json").write_text(json.dumps(found, indent=1))
    sys.stdout.write(f"{section.__name__}: {found['seconds']} s\n")


def write_document() -> None:
    """Write the document from what every section found last; while one has never run here, leave it as it is."""
    found = {section: FOUND / f"{section.__name__}.json" for section in SECTIONS}
    if missing := [section.__name__ for section, path in found.items() if not path.exists()]:
        raise SystemExit(f"{DOCUMENT.name}: expected every section to have run here, never ran {', '.join(missing)}")
    parts = [
        "# What the fault suite found\n\nWritten by `make faults`; each table says when and on which commit it ran.\n"
    ]
    parts += [_described(section, json.loads(path.read_text())) for section, path in found.items()]
    DOCUMENT.write_text("\n".join(parts))


def _described(section: Section, found: dict[str, Any]) -> str:
    stamp = f"{found['date']}, commit {found['commit']}, {found['seconds']} s."
    title = section.__name__.replace("_", " ").capitalize()
    return f"## {title}\n\n{section.__doc__}\n\n{stamp}\n\n" + "\n".join(map(_table, found["tables"]))


def _injected(target: Target, scratch: Path) -> list[Rows]:
    found: Counter[tuple[str, str, str]] = Counter()
    for injection, state in every_injection(target, scratch):
        found[injection.call, injection.fault, state] += 1
    rows = [[*what, str(count)] for what, count in sorted(found.items())]
    return [[["call", "fault", "found", "injections"], *rows, ["all", "", "", str(found.total())]]]


def _quickstart(scratch: Path) -> SealedRun:
    """A real run of the quickstart, in a clone, so that nothing is spent here."""
    subprocess.run(["git", "clone", "-q", str(TOP), str(scratch / "clone")], check=True)
    repository = CampaignRepository(scratch / "clone")
    campaign = "campaigns/quickstart/campaign.yaml"
    for command in (("packet", "freeze", campaign), ("consume-and-run", campaign)):
        done = subprocess.run(command_line(*command), cwd=repository.root, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 6):  # a slow machine may fail a timing gate; the run is whole all the same
            raise SystemExit(done.stdout + done.stderr)
    (run,) = (repository.root / ".labctl" / "runs").glob("quickstart-*")
    return open_sealed_run(run)


def _mutated(run: SealedRun, folder: Path, kinds: Sequence[str] = ()) -> list[Rows]:
    with Bench(run, folder) as bench:
        tally = try_mutations(bench, MUTATIONS, SEED, kinds)
    if tally.missed or tally.alone:
        raise SystemExit(f"missed: {tally.missed}, answered by one analyzer alone: {tally.alone}")
    head = ["change", "tried", *(f"caught {level}" for level in Level), "witness only", "missed"]
    answers: Counter[tuple[Level, str]] = Counter()
    for (_, level, answer), count in tally.caught.items():
        answers[level, answer] += count
    for (_, level, reason), count in tally.witnessed.items():
        answers[level, f"outside witness only: {reason}"] += count
    by_answer = [[str(level), answer, str(count)] for (level, answer), count in sorted(answers.items())]
    return [[head, *_by_kind(tally)], [["level", "answered by", "changes"], *by_answer]]


def _by_kind(tally: Tally) -> Iterator[list[str]]:
    for kind, tried in [*sorted(tally.tried.items()), ("all", tally.tried.total())]:
        kinds = set(tally.tried) if kind == "all" else {kind}
        caught = [
            sum(count for (one, at, _), count in tally.caught.items() if one in kinds and at is level)
            for level in Level
        ]
        witnessed = sum(count for (one, _, _), count in tally.witnessed.items() if one in kinds)
        missed = sum(one in kinds for one, _, _ in tally.missed)
        yield [kind, *map(str, (tried, *caught, witnessed, missed))]


def _counted(found: Counter[str]) -> Rows:
    return [[name, str(count)] for name, count in sorted(found.items())]


def _table(rows: Rows) -> str:
    head, *rest = rows
    lines = [head, ["---"] * len(head), *rest]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=TOP, capture_output=True, text=True, check=True).stdout.strip()


def main(arguments: Sequence[str]) -> None:
    """Run the named sections, or all, and write the document; an unknown name is a usage error and writes nothing."""
    names = {section.__name__: section for section in SECTIONS}
    parser = argparse.ArgumentParser(prog="faults.py", description=__doc__, usage="%(prog)s [-h] [SECTION ...]")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(names)}, or document")
    chosen = parser.parse_args(arguments).sections
    if unknown := sorted(set(chosen) - {*names, "document"}):
        known = ", ".join((*names, "document"))
        parser.exit(2, f"faults.py: expected sections of {known}, got {', '.join(unknown)}; see --help\n")
    for name, section in names.items():
        if not chosen or name in chosen:
            run_section(section)
    write_document()


if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    main(sys.argv[1:])
