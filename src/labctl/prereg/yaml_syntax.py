"""What a YAML parser's complaint means in words: it names the rule it was in, and not what the author should change."""

import yaml

_INDENT = "look at the indentation, the colons and the quotes here and in the lines above"
_SENTENCES = {
    "expected key": ("`key: value`, indented like its neighbours", "something else", _INDENT),
    "expected '-' indicator": ("`- item`, indented like its neighbours", "something else", _INDENT),
    "<block end>": ("a key or an item, indented like its neighbours", "something else", _INDENT),
    "sequence entries are not allowed": ("`- item` in a line of its own", "`-` after a key", "start a line with it"),
    "escape character": ("an escape that YAML knows", "another", "use single quotes, or write the backslash twice"),
    "',' or '}'": ("a comma or `}`", "something else", "close the braces, or quote the text that holds such signs"),
    "',' or ']'": ("a comma or `]`", "something else", "close the brackets, or quote the text that holds such signs"),
    "mapping values are not allowed": (
        "one `key: value`",
        "a second colon",
        f"quote the text that holds it, or {_INDENT}",
    ),
    "end of stream": ("a closing quote", "the end of the file", "close the quote"),
    "expected ':'": ("`key: value`", "a line without a colon", _INDENT),
    "cannot start any token": ("a value", "a sign that no plain value starts with", "put the value in quotes"),
    "node content": (
        "a value",
        "nothing, or a sign that no value starts with",
        "write the value, in quotes if need be",
    ),
}


def describe_syntax(error: yaml.MarkedYAMLError) -> tuple[str, str, str]:
    """What was expected, what is there and what to do, with the line where the broken thing begins."""
    complaint = error.problem or error.context or "something else"
    expected, got, do = next(
        (sentence for words, sentence in _SENTENCES.items() if words in complaint),
        ("text that is YAML", f"something else (the parser says: {complaint})", _INDENT),
    )
    if error.problem_mark and error.context_mark and error.context_mark.line < error.problem_mark.line:
        got = f"{got}, in the part that begins in line {error.context_mark.line + 1}"
    return expected, got, do
