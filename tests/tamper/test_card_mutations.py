"""Machine-made changes of sealed runs on cards, each caught by both analyzers or listed for an outside witness."""

from pathlib import Path

import pytest

from tests.fakes.card_run import CardRun
from tests.fakes.component_run import ComponentRun
from tests.fakes.probe_run import ProbeRun
from tests.tamper.bench import Bench, Level, try_mutations
from tests.tamper.mutations import KINDS_OF_LEGS, KINDS_OF_TEXT

MUTATIONS = 60


@pytest.mark.parametrize(
    ("run", "kinds"), [(ComponentRun(), (*KINDS_OF_TEXT, *KINDS_OF_LEGS)), (ProbeRun(), KINDS_OF_TEXT)]
)
def test_changes_of_a_run_on_cards_are_all_caught_or_listed(
    run: CardRun, kinds: tuple[str, ...], tmp_path: Path
) -> None:
    with Bench(run.seal(tmp_path / "sealed"), tmp_path / "bench") as bench:
        tally = try_mutations(bench, MUTATIONS, seed=3, kinds=kinds)
    assert tally.missed == []
    assert tally.alone == []
    assert sum(count for (_, level, _), count in tally.caught.items() if level is Level.RAW) == MUTATIONS
    assert sum(count for (_, level, _), count in tally.caught.items() if level is Level.MENDED) > MUTATIONS // 2
