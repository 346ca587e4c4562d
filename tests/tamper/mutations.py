"""Machine-made changes of a sealed run: one random change of one kind, as data.

`mutate(files, chance)` looks at a run as a mapping from path (relative to its folder) to bytes and returns a
`Mutation` whose files differ from it. `KINDS` names what can be asked for; a kind that finds nothing to change in the
files that it drew is drawn again.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Files = dict[str, bytes]
NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
STAMP = re.compile(rb'"(?:kernel|mono|realtime)[a-z_]*_ns":(\d+)')
KERNEL = re.compile(rb'"kernel_ns":(\d+)')
BINARY = (".bin",)
TRIES = 200


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change."""

    kind: str
    where: str
    """The file or folder that was changed."""
    files: Files
    """The whole run after it."""


Change = Callable[[Files, random.Random], tuple[str, Files] | None]


def mutate(files: Mapping[str, bytes], chance: random.Random, kind: str | None = None) -> Mutation:
    """A change of one kind, which is drawn where none is given."""
    before = dict(files)
    for _ in range(TRIES):
        drawn = kind or chance.choice(sorted(KINDS))
        changed = KINDS[drawn](before, chance)
        if changed is not None and changed[1] != before:
            return Mutation(drawn, *changed)
    message = f"nothing of this run can be changed by {kind or 'any kind'}"
    raise RuntimeError(message)


def _text_names(files: Files) -> list[str]:
    return sorted(name for name, data in files.items() if data and not name.endswith(BINARY))


def _edited(files: Files, name: str, data: bytes) -> tuple[str, Files]:
    return name, files | {name: data}


def _bit(files: Files, chance: random.Random) -> tuple[str, Files]:
    name = chance.choice(sorted(name for name, data in files.items() if data))
    data = bytearray(files[name])
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return _edited(files, name, bytes(data))


def _digit(files: Files, chance: random.Random) -> tuple[str, Files] | None:
    name = chance.choice(_text_names(files))
    data = bytearray(files[name])
    places = [place for place, byte in enumerate(data) if chr(byte).isdigit()]
    if not places:
        return None
    data[chance.choice(places)] = ord(chance.choice("0123456789"))
    return _edited(files, name, bytes(data))


def _sign(files: Files, chance: random.Random) -> tuple[str, Files] | None:
    return _number(files, chance, _text_names(files), lambda word: word[1:] if word[:1] == b"-" else b"-" + word)


def _number(
    files: Files, chance: random.Random, names: list[str], change: Callable[[bytes], bytes]
) -> tuple[str, Files] | None:
    name = chance.choice(names)
    found = list(NUMBER.finditer(files[name]))
    if not found:
        return None
    one = chance.choice(found)
    return _edited(files, name, files[name][: one.start()] + change(one[0]) + files[name][one.end() :])


def _lines(change: Callable[[list[bytes], random.Random], None]) -> Change:
    def apply(files: Files, chance: random.Random) -> tuple[str, Files] | None:
        name = chance.choice(_text_names(files))
        lines = files[name].splitlines(keepends=True)
        if len(lines) < 2:
            return None
        change(lines, chance)
        return _edited(files, name, b"".join(lines))

    return apply


def _drop_line(lines: list[bytes], chance: random.Random) -> None:
    del lines[chance.randrange(len(lines))]


def _duplicate_line(lines: list[bytes], chance: random.Random) -> None:
    at = chance.randrange(len(lines))
    lines.insert(at, lines[at])


def _swap_lines(lines: list[bytes], chance: random.Random) -> None:
    one, other = chance.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]


def _reorder_lines(lines: list[bytes], chance: random.Random) -> None:
    chance.shuffle(lines)


def _drop_file(files: Files, chance: random.Random) -> tuple[str, Files]:
    name = chance.choice(sorted(files))
    return name, {path: data for path, data in files.items() if path != name}


def _duplicate_file(files: Files, chance: random.Random) -> tuple[str, Files]:
    name = chance.choice(sorted(files))
    folder, _, last = name.rpartition("/")
    return name, files | {f"{folder}/9{last}".lstrip("/"): files[name]}


def _swap_files(files: Files, chance: random.Random) -> tuple[str, Files]:
    one, other = sorted(chance.sample(sorted(files), 2), key=lambda name: not name.startswith("data/"))
    return one, files | {one: files[other], other: files[one]}


def _rows(files: Files) -> list[str]:
    """The stem of every row, such as `data/legs/01-A1/wire/01`."""
    return sorted(name.removesuffix(".bin") for name in files if name.endswith(".bin"))


def _drop_row(files: Files, chance: random.Random) -> tuple[str, Files]:
    row = chance.choice(_rows(files))
    return row, {path: data for path, data in files.items() if not path.startswith(f"{row}.")}


def _duplicate_row(files: Files, chance: random.Random) -> tuple[str, Files]:
    row = chance.choice(_rows(files))
    copy = f"{row.rpartition('/')[0]}/{len(_rows(files)) + 1:02d}"
    return row, files | {f"{copy}{end}": files[f"{row}{end}"] for end in (".bin", ".reads.jsonl")}


def _swap_rows(files: Files, chance: random.Random) -> tuple[str, Files]:
    one, other = chance.sample(_rows(files), 2)
    return one, _exchanged(files, f"{one}.", f"{other}.")


def _legs(files: Files) -> list[str]:
    return sorted({"/".join(name.split("/")[:3]) for name in files if name.startswith("data/legs/")})


def _drop_leg(files: Files, chance: random.Random) -> tuple[str, Files]:
    leg = chance.choice(_legs(files))
    return leg, {path: data for path, data in files.items() if not path.startswith(f"{leg}/")}


def _duplicate_leg(files: Files, chance: random.Random) -> tuple[str, Files]:
    leg = chance.choice(_legs(files))
    copies = {f"data/legs/09-{leg[-2:]}/{path[len(leg) + 1 :]}": files[path] for path in files if path.startswith(leg)}
    return leg, files | copies


def _swap_legs(files: Files, chance: random.Random) -> tuple[str, Files]:
    one, other = chance.sample(_legs(files), 2)
    return one, _exchanged(files, f"{one}/", f"{other}/")


def _swap_arms(files: Files, chance: random.Random) -> tuple[str, Files]:
    """The first control and the first candidate change places, under names that say so."""
    legs = _legs(files)
    control = chance.choice([leg for leg in legs if "-A" in leg])
    candidate = chance.choice([leg for leg in legs if "-B" in leg])
    return control, _exchanged(files, f"{control}/", f"{candidate}/")


def _exchanged(files: Files, one: str, other: str) -> Files:
    def renamed(path: str) -> str:
        for old, new in ((one, other), (other, one)):
            if path.startswith(old):
                return new + path.removeprefix(old)
        return path

    return {renamed(path): data for path, data in files.items()}


def _counter(files: Files, chance: random.Random) -> tuple[str, Files] | None:
    names = [name for name in _text_names(files) if name.endswith(".prom")]
    return _number(files, chance, names, lambda word: str(float(word) + chance.choice([-1, 1, 7])).encode())


def _log_line(files: Files, chance: random.Random) -> tuple[str, Files]:
    name = chance.choice(sorted(name for name in files if name.endswith("/server.log")))
    lines = files[name].splitlines(keepends=True)
    lines.insert(chance.randrange(len(lines) + 1), b"INFO everything is as it should be\n")
    return _edited(files, name, b"".join(lines))


def _stamp(files: Files, chance: random.Random) -> tuple[str, Files]:
    name = chance.choice(sorted(name for name in files if name.endswith(".reads.jsonl")))
    one = chance.choice(list(STAMP.finditer(files[name])))
    moved = int(one[1]) + chance.choice([-1_000_000_000, -50_000, 50_000, 1_000_000_000])
    return _edited(files, name, files[name][: one.start(1)] + str(moved).encode() + files[name][one.end(1) :])


def _hurry(files: Files, chance: random.Random) -> tuple[str, Files] | None:
    """Kernel stamps of one row twice as close together: tokens that came twice as fast, all in order."""
    name = chance.choice(sorted(name for name in files if name.endswith(".reads.jsonl")))
    stamps = [int(one[1]) for one in KERNEL.finditer(files[name])]
    if not stamps:
        return None
    hurried = KERNEL.sub(lambda one: b'"kernel_ns":%d' % ((int(one[1]) + stamps[0]) // 2), files[name])
    return _edited(files, name, hurried)


def _cut(files: Files, chance: random.Random) -> tuple[str, Files]:
    name = chance.choice(sorted(name for name, data in files.items() if data))
    return _edited(files, name, files[name][: chance.randrange(len(files[name]))])


KINDS: dict[str, Change] = {
    "flip a bit": _bit,
    "change a digit": _digit,
    "change a sign": _sign,
    "drop a line": _lines(_drop_line),
    "duplicate a line": _lines(_duplicate_line),
    "swap lines": _lines(_swap_lines),
    "reorder lines": _lines(_reorder_lines),
    "cut a file": _cut,
    "drop a file": _drop_file,
    "duplicate a file": _duplicate_file,
    "swap files": _swap_files,
    "drop a row": _drop_row,
    "duplicate a row": _duplicate_row,
    "swap rows": _swap_rows,
    "drop a leg": _drop_leg,
    "duplicate a leg": _duplicate_leg,
    "swap legs": _swap_legs,
    "swap A and B": _swap_arms,
    "edit a counter": _counter,
    "edit a log line": _log_line,
    "edit a stamp": _stamp,
    "hurry a row": _hurry,
}
KINDS_OF_TEXT = (
    "flip a bit", "change a digit", "change a sign", "drop a line", "duplicate a line", "swap lines", "reorder lines",
    "cut a file", "drop a file", "duplicate a file", "swap files",
)  # fmt: skip
"""Kinds that every run has something for."""
KINDS_OF_LEGS = ("drop a leg", "swap legs")
"""Kinds for runs of several legs without arms."""
