"""Workers that spoil one thing: the honest worker's text, and then a text that takes something of it away.

Each runs to its end with exit status 0. What it wrote is well-formed; only who holds its records against each other,
and against what the leg saw from outside, finds it out.
"""

from pathlib import Path

HONEST = Path(__file__).parent / "workers" / "scaled_rows.py"
CAMPAIGN = HONEST.with_suffix(".yaml")

FLIPPED_BIT = """
class Flipped(Kept):
    calls = 0
    def __call__(self, call):
        super().__call__(call)
        Flipped.calls += 1
        if Flipped.calls == 7:  # row 7: shifted, w3, first repeat
            call.caches[1].view(torch.int16)[1, int(call.inputs["slots"][2]), 5] ^= 1
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Flipped
)
"""

ROUNDED_BOUNDARY = """
class Rounded(Kept):
    calls = 0
    def __call__(self, call):
        Rounded.calls += 1
        at = call.at
        def spoiled(name, tensor):
            if Rounded.calls == 3 and name == "moved":  # row 3: plain, w3, first repeat
                tensor.view(torch.int16)[1, 2, 9] ^= 1
            at(name, tensor)
        super().__call__(Call(call.sizes, call.inputs, call.caches, spoiled))
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Rounded
)
"""

OTHER_SLOT = """
class Straying(Kept):
    def __call__(self, call):
        super().__call__(call)
        free = next(slot for slot in range(SLOTS) if slot not in call.inputs["slots"].tolist())
        call.caches[0][0, free, 0] = 9
class StrayingToo(Fresh):
    def __call__(self, call):
        super().__call__(call)
        free = next(slot for slot in range(SLOTS) if slot not in call.inputs["slots"].tolist())
        call.caches[0][0, free, 0] = 9
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1),
    control=StrayingToo, candidate=Straying,
)
"""

NEW_TENSORS_EACH_TIME = """
class Forgetful(Kept):
    kept_alive = []
    def __call__(self, call):
        Forgetful.kept_alive.append(self.pairs.pop(call.sizes["width"], None))
        super().__call__(call)
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Forgetful
)
"""

OVERLAPPING_WIDTHS = """
class Overlapping(Kept):
    def __init__(self, setup):
        super().__init__(setup)
        layers, hidden = setup.sizes["layers"], setup.sizes["hidden"]
        whole = torch.empty(2 * layers * WIDEST * hidden, dtype=BF16)
        for width in range(1, WIDEST + 1):
            self.pairs[width] = whole[: 2 * layers * width * hidden].view(2, layers, width, hidden)
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Overlapping
)
"""

CONTROL_AS_CANDIDATE = """
class Copying(Fresh):
    def __init__(self, setup):
        super().__init__(setup)
        self.pairs = {}
    def owned(self, sizes):
        layers, width, hidden = (sizes.get(name, 0) for name in ("layers", "width", "hidden"))
        if width > WIDEST:
            return {}
        if width not in self.pairs:
            self.pairs[width] = torch.empty((2, layers, width, hidden), dtype=BF16)
        return {"pair": self.pairs[width]}
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Copying
)
"""

CHANGED_WEIGHT = """
class Changing(Kept):
    def __call__(self, call):
        super().__call__(call)
        self.fresh.scale[0, 0, 0] = 3
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Changing
)
"""

CHANGED_INPUT = """
class Careless(Kept):
    def __call__(self, call):
        super().__call__(call)
        call.inputs["rows"][0, 0] = 3
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Careless
)
"""

CONSTANT_POINTERS = """
import labctl.component.tensors as recording
observed = recording.place_record
def printed(name, tensor):
    return {**observed(name, tensor), "data_ptr": 4096, "storage_ptr": 4096}
recording.place_record = printed
"""

INVENTED_POINTERS = """
import labctl.component.tensors as recording
observed = recording.place_record
invented = {}
def printed(name, tensor):
    record = observed(name, tensor)
    storage = invented.setdefault(record["storage_ptr"], (len(invented) + 1) << 20)
    offset = record["data_ptr"] - record["storage_ptr"]
    return {**record, "data_ptr": storage + offset, "storage_ptr": storage}
recording.place_record = printed
"""

CONSTANT_DIGESTS = """
import hashlib
import labctl.component.tensors as recording
class Printed:
    def __init__(self, data=b""):
        self.real = hashlib.sha256(b"always the same")
    def update(self, data):
        self.real.update(data)
    def hexdigest(self):
        return self.real.hexdigest()
recording.hashlib = type("Printing", (), {"sha256": Printed})
"""

SILENCED_WARNINGS = """
import warnings
warnings.filterwarnings("ignore")
class Warning_(Kept):
    def __call__(self, call):
        warnings.warn("a kernel fell back to another one", RuntimeWarning)
        super().__call__(call)
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Warning_
)
"""

REDIRECTED_WARNINGS = """
import os
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
"""

HIDDEN_WARNINGS = """
import labctl.component.warning_log as showing
class Warning_(Kept):
    def __call__(self, call):
        import sys
        sys.stderr.write("worker.py:1: RuntimeWarning: a kernel fell back to another one\\n")
        super().__call__(call)
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Warning_
)
"""

PRETENDED_CAPTURE = """
torch.jit.is_tracing = lambda: True
class Calm(Kept):
    def __call__(self, call):
        if call.at.__name__ == "_unrecorded":
            raise RuntimeError("kept tensors cannot be captured")
        torch.jit.is_tracing = lambda: False
        try:
            super().__call__(call)
        finally:
            torch.jit.is_tracing = lambda: True
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Calm
)
"""

INVENTED_CAPTURE = """
import labctl.component.capture as capturing
def pretended(self, body):
    seen = []
    capturing.look = lambda device: seen.append(1) or {"asked": len(seen) == 1, "state": len(seen) == 1}
    body()
    capturing.look = lambda device: {"asked": False, "state": False}
    return self._operand + 1, self._operand + 1
capturing.Capture._trace = pretended
class Refusing(Kept):
    def __call__(self, call):
        if call.at.__name__ == "_unrecorded":
            raise RuntimeError("kept tensors cannot be captured")
        super().__call__(call)
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Refusing
)
"""

SHARED_CACHES = """
import labctl.component.bench as benching
made = benching.Bench.__init__
def shared(self, *parts):
    made(self, *parts)
    self.candidate_caches = self.control_caches
benching.Bench.__init__ = shared
"""

SAME_INPUTS_AGAIN = """
honest_inputs = inputs
def stale_inputs(draw, sizes):
    draw._seed = 5
    return honest_inputs(draw, sizes)
worker = Worker(
    weights=weights, inputs=stale_inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Kept
)
"""

USED_AT_INERT_SIZE = """
class Eager(Kept):
    def __call__(self, call):
        global WIDEST
        WIDEST = 9
        super().__call__(call)
worker = Worker(
    weights=weights, inputs=inputs, caches=caches, slots=Slots("slots", dim=1), control=Fresh, candidate=Eager
)
"""

LIES = {
    "flipped_bit": FLIPPED_BIT,
    "rounded_boundary": ROUNDED_BOUNDARY,
    "other_slot": OTHER_SLOT,
    "new_tensors_each_time": NEW_TENSORS_EACH_TIME,
    "overlapping_widths": OVERLAPPING_WIDTHS,
    "control_as_candidate": CONTROL_AS_CANDIDATE,
    "changed_weight": CHANGED_WEIGHT,
    "changed_input": CHANGED_INPUT,
    "constant_pointers": CONSTANT_POINTERS,
    "invented_pointers": INVENTED_POINTERS,
    "constant_digests": CONSTANT_DIGESTS,
    "silenced_warnings": SILENCED_WARNINGS,
    "redirected_warnings": REDIRECTED_WARNINGS,
    "hidden_warnings": HIDDEN_WARNINGS,
    "pretended_capture": PRETENDED_CAPTURE,
    "invented_capture": INVENTED_CAPTURE,
    "shared_caches": SHARED_CACHES,
    "same_inputs_again": SAME_INPUTS_AGAIN,
    "used_at_inert_size": USED_AT_INERT_SIZE,
}


def write_worker(folder: Path, lie: str | None = None) -> Path:
    """A worker file: honest, or with one lie."""
    path = folder / "lying_worker.py"
    path.write_text(HONEST.read_text(encoding="utf-8") + (LIES[lie] if lie else ""), encoding="utf-8")
    return path
