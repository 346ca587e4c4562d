"""Gates over answers that may differ between the arms, or of which only the text is known, one model a kind."""

from typing import Literal

from labctl.frozen import FrozenModel
from labctl.prereg.field_types import GateId


class ExactWithinArms(FrozenModel):
    """Every start equals the first of its own arm; what the arms do between them is reported."""

    kind: Literal["exact_within_arms"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


class ExactText(FrozenModel):
    """Every row's text and finish reason equal the teacher's; token ids are not compared."""

    kind: Literal["exact_text"]
    """The gate's kind."""
    id: GateId | None = None
    """Its id; the kind where absent."""


AnswerGate = ExactWithinArms | ExactText
"""Gates over answers."""
