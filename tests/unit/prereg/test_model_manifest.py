"""Model manifests."""

import pytest

from labctl.codes import Code
from labctl.errors import InvalidPreregistration
from labctl.prereg.model_manifest import parse_model_manifest

A, B = "a" * 64, "b" * 64


def test_lines_of_sha256sum_are_read_in_order() -> None:
    manifest = parse_model_manifest(f"{B}  w/model.safetensors\n{A}  config.json\n".encode(), "m")
    assert [(file.path, file.sha256) for file in manifest.files] == [("w/model.safetensors", B), ("config.json", A)]


@pytest.mark.parametrize(
    "line",
    [
        "",
        f"{A} x",
        f"{A} *x",
        f"\\{A}  x",
        f"{A}  /x",
        f"{A}  ../x",
        f"{A}  a/../x",
        f"{A}  x y",
        f"{A[1:]}  x",
        f"{A}  ",
    ],
)
def test_any_other_form_is_refused(line: str) -> None:
    with pytest.raises(InvalidPreregistration) as caught:
        parse_model_manifest(f"{A}  good\n{line}\n{B}  last\n".encode(), "m")
    assert [(problem.code, problem.where) for problem in caught.value.problems] == [(Code.MANIFEST_FORM, "m:2:1")]


def test_every_wrong_line_is_named() -> None:
    with pytest.raises(InvalidPreregistration) as caught:
        parse_model_manifest(f"{A}  x\n{B}  x\nnonsense\n{A}  y".encode(), "m")
    assert caught.value.codes == (Code.DUPLICATE_KEY, Code.MANIFEST_FORM, Code.MANIFEST_FORM)


def test_an_empty_manifest_is_refused() -> None:
    with pytest.raises(InvalidPreregistration):
        parse_model_manifest(b"", "m")
