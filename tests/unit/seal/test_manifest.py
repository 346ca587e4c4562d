import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.codes import Code
from labctl.digest import manifest_lines
from labctl.errors import ManifestMismatch
from labctl.seal.manifest import FileFacts, compare_manifest, parse_manifest, shown

A, B = "a" * 64, "b" * 64
GOOD = f"{A}  data/a.txt\n{B}  data/b/c.txt\n".encode()

BAD = {
    "parent folder": f"{A}  data/../x\n",
    "absolute path": f"{A}  /data/a\n",
    "dot": f"{A}  data/./a\n",
    "double slash": f"{A}  data//a\n",
    "trailing slash": f"{A}  data/a/\n",
    "outside the payload": f"{A}  a.txt\n",
    "the manifest itself": f"{A}  manifest-sha256.txt\n",
    "the seal": f"{A}  seal.json\n",
    "only the folder": f"{A}  data/\n",
    "same path, same digest": f"{A}  data/a\n{A}  data/a\n",
    "same path, other digest": f"{A}  data/a\n{B}  data/a\n",
    "case twin": f"{A}  data/A\n{A}  data/a\n",
    "unsorted": f"{A}  data/b\n{A}  data/a\n",
    "carriage return": f"{A}  data/a\r\n",
    "byte order mark": f"\ufeff{A}  data/a\n",
    "comment": f"# note\n{A}  data/a\n",
    "blank line": f"{A}  data/a\n\n",
    "blank line first": f"\n{A}  data/a\n",
    "upper-case digest": f"{'A' * 64}  data/a\n",
    "bsd form": f"SHA256 (data/a) = {A}\n",
    "binary marker": f"{A} *data/a\n",
    "one space": f"{A} data/a\n",
    "three spaces": f"{A}   data/a\n",
    "tab": f"{A}\tdata/a\n",
    "escape": f"\\{A}  data/a\n",
    "nul": f"{A}  data/a\0b\n",
    "no final newline": f"{A}  data/a",
    "empty": "",
    "only a newline": "\n",
    "md5": f"{'a' * 32}  data/a\n",
    "sha1": f"{'a' * 40}  data/a\n",
    "sha512": f"{'a' * 128}  data/a\n",
    "hidden file": f"{A}  data/.a\n",
    "leading hyphen": f"{A}  data/-a\n",
    "space in a name": f"{A}  data/a b\n",
    "umlaut": f"{A}  data/ä\n",
    "other line end": f"{A}  data/a\u2028b\n",
}


def test_the_canonical_form_is_read() -> None:
    assert parse_manifest(GOOD, "manifest") == {"data/a.txt": A, "data/b/c.txt": B}


@pytest.mark.parametrize("fault", BAD)
def test_every_deviation_is_refused_by_code(fault: str) -> None:
    with pytest.raises(ManifestMismatch) as caught:
        parse_manifest(BAD[fault].encode(), "manifest")
    assert set(caught.value.codes) == {Code.MANIFEST_FORM}


def test_every_bad_line_is_named() -> None:
    data = f"{A}  data/a\nnonsense\n{B}  data/b\n{B}  data/../c\n".encode()
    with pytest.raises(ManifestMismatch) as caught:
        parse_manifest(data, "manifest")
    assert [problem.where for problem in caught.value.problems] == ["manifest:2", "manifest:4"]


def test_a_tag_manifest_has_bare_names() -> None:
    assert parse_manifest(f"{A}  bagit.txt\n".encode(), "tags", prefix="") == {"bagit.txt": A}


@given(st.binary(max_size=200))
def test_whatever_is_accepted_is_canonical(data: bytes) -> None:
    try:
        digests = parse_manifest(data, "manifest")
    except ManifestMismatch:
        return
    assert manifest_lines(digests) == data


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_one_changed_byte_is_refused_or_means_something_else(place: int, value: int) -> None:
    changed = GOOD[:place] + bytes([value]) + GOOD[place + 1 :]
    try:
        digests = parse_manifest(changed, "manifest")
    except ManifestMismatch:
        return
    assert (digests == parse_manifest(GOOD, "manifest")) == (changed == GOOD)


def test_each_difference_has_its_own_code() -> None:
    expected = {"data/gone": A, "data/short": A, "data/other": A, "data/same": A}
    found = {
        "data/short": FileFacts(B, 3),
        "data/other": FileFacts(B, 4),
        "data/same": FileFacts(A, 4),
        "data/new": FileFacts(A, 4),
    }
    sizes = dict.fromkeys(expected, 4)
    problems = {problem.where: problem.code for problem in compare_manifest(expected, sizes, found)}
    assert problems == {
        "data/gone": Code.MISSING_FILE,
        "data/short": Code.SIZE_MISMATCH,
        "data/other": Code.DIGEST_MISMATCH,
        "data/new": Code.EXTRA_FILE,
    }


def test_swapped_contents_are_two_mismatches() -> None:
    found = {"data/a": FileFacts(B, 1), "data/b": FileFacts(A, 1)}
    problems = list(compare_manifest({"data/a": A, "data/b": B}, {}, found))
    assert [problem.where for problem in problems] == ["data/a", "data/b"]


def test_a_name_is_shown_without_its_control_characters() -> None:
    assert shown("data/ok.txt") == "data/ok.txt"
    assert "\x1b" not in shown("data/\x1b[2J")
    assert "\u202e" not in shown("data/\u202etxt")
