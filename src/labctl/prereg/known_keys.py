"""Which keys a mapping of a campaign file may hold, read from the models themselves."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from labctl.frozen import FrozenModel
from labctl.prereg.places import TreePath


def known_keys(model: type[FrozenModel], path: TreePath, tree: object) -> list[str]:
    """The keys that the mapping at a path may hold; for a union, those of the members that fit best."""
    annotations: list[Any] = [model]
    node: Any = tree
    for part in path:
        members = [member for annotation in annotations for member in _fitting(annotation, node)]
        annotations = [step for member in members for step in _below(member, part)]
        node = node[part]
    members = [member for annotation in annotations for member in _fitting(annotation, node)]
    return list(dict.fromkeys(key for member in members if _is_model(member) for key in field_names(member)))


def field_names(model: type[FrozenModel]) -> dict[str, str]:
    """Every key of a model as YAML writes it, with the name of its field."""
    return {field.alias or name: name for name, field in model.model_fields.items()}


def _fitting(annotation: object, node: object) -> list[Any]:
    members = list(_members(annotation))
    models = [member for member in members if _is_model(member)]
    if len(models) < 2 or not isinstance(node, dict):  # noqa: PLR2004 (one is no choice)
        return members
    scores = [_score(model, node) for model in models]
    return [model for model, score in zip(models, scores, strict=True) if score == max(scores)]


def _score(model: type[FrozenModel], node: dict[str, object]) -> int:
    kind = model.model_fields.get("kind")
    says_so = kind is not None and node.get("kind") in get_args(kind.annotation)
    return 100 * says_so + len(field_names(model).keys() & node.keys())


def _members(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 (annotations have no common type)
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _members(get_args(annotation)[0])
    elif origin in {Union, types.UnionType}:
        for member in get_args(annotation):
            yield from _members(member)
    elif origin is not Literal:
        yield annotation


def _below(member: Any, part: str | int) -> list[Any]:  # noqa: ANN401 (annotations have no common type)
    if _is_model(member):
        names = field_names(member)
        return [member.model_fields[names[part]].annotation] if part in names else []
    match get_origin(member):
        case builtin if builtin in {tuple, dict}:
            return [argument for argument in get_args(member)[-2 if builtin is tuple else -1 :] if argument is not ...]
        case _:
            return []


def _is_model(member: object) -> bool:
    return isinstance(member, type) and issubclass(member, FrozenModel)
