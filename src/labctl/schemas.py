"""The JSON Schemas of campaign files, generated from the models, for editors and for anybody else's validator."""

import ast
import inspect
import itertools
import json
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from labctl.codes import Code
from labctl.durable import make_folders, replace_regenerable
from labctl.errors import Problem, Refused
from labctl.frozen import FrozenModel
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Preregistration
from labctl.prereg.noise import NoiseRecord
from labctl.prereg.probe_model import ProbePreregistration
from labctl.prereg.suite import Oracle, Suite

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODELS_PACKAGE = "labctl.prereg."
_MODELS: dict[str, tuple[str, type[FrozenModel]]] = {
    "component.schema.json": ("labctl component", ComponentPreregistration),
    "host.schema.json": ("labctl host profile", HostProfile),
    "noise.schema.json": ("labctl noise record", NoiseRecord),
    "oracle.schema.json": ("labctl oracle", Oracle),
    "preregistration.schema.json": ("labctl preregistration", Preregistration),
    "probe.schema.json": ("labctl probe", ProbePreregistration),
    "suite.schema.json": ("labctl suite", Suite),
}


def schema_files() -> dict[str, bytes]:
    """Every schema file by name, the same bytes on every machine."""
    return {name: _schema(title, kind) for name, (title, kind) in _MODELS.items()}


def write_schemas(folder: Path) -> list[Path]:
    """Write every schema file, replacing what was there."""
    make_folders(folder)
    for name, data in schema_files().items():
        replace_regenerable(folder / name, data)
    return [folder / name for name in _MODELS]


def check_schemas(folder: Path) -> list[Path]:
    """The schema files, all equal to what the models give.

    Raises:
        Refused: naming each file that differs or is absent (FILE_DRIFT).
    """
    stale = [name for name, data in schema_files().items() if _bytes_of(folder / name) != data]
    if stale:
        raise Refused(
            Problem(Code.FILE_DRIFT, str(folder / name), "what the models give", "other bytes", _RENEW)
            for name in stale
        )
    return [folder / name for name in _MODELS]


_RENEW = "run `labctl prereg schema --write`"


def _bytes_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _schema(title: str, root: type[FrozenModel]) -> bytes:
    body = root.model_json_schema(by_alias=True, mode="validation")
    described: dict[str, dict[str, Any]] = {**body.get("$defs", {}), root.__name__: body}
    for name, kind in _described_models(described).items():
        for field, text in _docstrings(kind).items():
            key = kind.model_fields[field].alias or field
            described[name]["properties"][key].setdefault("description", text)
    document = {"$schema": _DIALECT, **body, "title": title}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _described_models(names: Container[str]) -> dict[str, type[FrozenModel]]:
    kinds = (kind for kind in _subclasses(FrozenModel) if kind.__module__.startswith(_MODELS_PACKAGE))
    return {kind.__name__: kind for kind in kinds if kind.__name__ in names}


def _subclasses(kind: type[FrozenModel]) -> Iterator[type[FrozenModel]]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


def _docstrings(kind: type[FrozenModel]) -> dict[str, str]:
    inherited = kind.__bases__[0]
    above = {} if inherited is FrozenModel else _docstrings(inherited)
    return {**above, **_own_docstrings(kind)}


def _own_docstrings(kind: type[FrozenModel]) -> dict[str, str]:
    body = ast.parse(inspect.getsource(kind)).body[0]
    texts: dict[str, str] = {}
    for field, text in itertools.pairwise(body.body if isinstance(body, ast.ClassDef) else []):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                texts[name] = inspect.cleandoc(words)
            case _:
                continue
    return texts
