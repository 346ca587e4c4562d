"""Gates over answers that may differ between the arms, or of which only the text is known."""

from .gate_findings import Gate, compare
from .row_figures import UNTOLD
from .run_reading import Run
from .sealed_files import Doc
from .start_gates import taught_rows


def exact_within_arms(gate: Gate, run: Run, _: Doc) -> None:
    """Every start equals the first of its own arm."""
    for arm in sorted({name[0] for name in run.order}):
        legs = run.arm(arm)
        is_there = len(legs) > 1 and any(leg.rows for leg in legs)
        if gate.knows(is_there or None, f"arm {arm}", "a second start with a row"):
            compare(gate, legs[1:], [row.told for row in legs[0].rows])


def exact_text(gate: Gate, run: Run, _: Doc) -> None:
    """Text and finish reason of every row equal the teacher's; tokens are not compared."""
    taught = taught_rows(run) if any(leg.rows for leg in run.legs) else None
    if not gate.knows(taught, "run", "a row, a teacher or a first control start"):
        return
    if not gate.knows(None if any(told[1] is UNTOLD for told in taught) else taught, "teacher", "a digest of a text"):
        return
    for leg in run.legs:
        gate.same(leg.name, "rows", len(taught), len(leg.rows))
        sides = zip(leg.rows, taught, strict=False)
        held = [
            any(row.answer.texts) and row.told[1] == told[1] and told[2] in (UNTOLD, row.told[2]) for row, told in sides
        ]
        gate.same(leg.name, "texts that differ", [], [at for at, is_equal in enumerate(held, start=1) if not is_equal])
        gate.note(leg.name, "rows", exact_texts=sum(held))
