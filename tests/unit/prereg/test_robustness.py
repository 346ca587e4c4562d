"""Whatever a file says, the answer is a model or problems with a place in the file, and never another error."""

import copy
import json
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from labctl.prereg.checking import check_paths
from labctl.prereg.load import try_host_profile, try_preregistration, try_suite
from labctl.prereg.strict_yaml import read_yaml

FIXTURES = Path(__file__).parents[2] / "fixtures" / "prereg"
RECORD: Any = read_yaml((FIXTURES / "good" / "record.yaml").read_bytes(), "record").tree
WORDS = [
    "kind",
    "id",
    "git",
    "counter",
    "log",
    "teacher",
    "environment",
    "argument",
    "control",
    "pair",
    "A1",
    "first_control",
]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.sampled_from([*WORDS, "{port}", "{prt}", "1", "-0.5", "(", "", "a b"])
    | st.text(alphabet="aZ0 ~{}:é漢", max_size=6)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WORDS, "zzz"]), inner, max_size=4),
    max_leaves=6,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401 (a tree)
    steps = list(node.items()) if isinstance(node, dict) else list(enumerate(node)) if isinstance(node, list) else []
    return [path, *(place for key, value in steps for place in places(value, (*path, key)))]


PLACES = places(RECORD)[1:]


def changed(changes: list[tuple[tuple[Any, ...], str, Any]]) -> Any:  # noqa: ANN401 (a tree)
    tree = copy.deepcopy(RECORD)
    for path, how, value in changes:
        node = tree
        try:
            for part in path[:-1]:
                node = node[part]
            old = node[path[-1]]
            if how == "replace" or not isinstance(node, dict):
                node[path[-1]] = value
            else:
                del node[path[-1]]
            if how == "misspell" and isinstance(node, dict):
                node[f"{path[-1]}s"] = old
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took this place away
    return tree


changes = st.lists(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(["replace", "delete", "misspell"]), values),
    min_size=1,
    max_size=3,
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes)
def test_a_changed_preregistration_is_accepted_or_explained(tmp_path: Path, made: Any) -> None:  # noqa: ANN401 (a tree)
    path = tmp_path / "campaign.yaml"
    path.write_text(json.dumps(changed(made), ensure_ascii=False))
    attempt = try_preregistration(path)
    assert attempt.problems or attempt.loaded is not None
    for problem in attempt.problems:
        assert problem.where.endswith(tuple("0123456789"))
        assert all((problem.expected, problem.got, problem.do))
        assert "\n" not in str(problem)
    assert len(set(attempt.problems)) == len(attempt.problems)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values)
def test_any_tree_is_answered_for_every_kind(tmp_path: Path, tree: Any) -> None:  # noqa: ANN401 (a tree)
    path = tmp_path / "x.yaml"
    path.write_text(json.dumps(tree, ensure_ascii=False))
    for read in (try_preregistration, try_host_profile, try_suite):
        assert read(path).problems
    assert check_paths([path])[0].problems
