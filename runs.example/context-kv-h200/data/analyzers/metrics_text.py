"""Prometheus text, line by line: every sample, or a ValueError where one line is none."""

import re
from collections.abc import Iterator

Labels = tuple[tuple[str, str], ...]
NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*"
PAIR = r'(?!__)([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
NUMBER = r"[+-]?(?:(?:[0-9]{1,60}(?:\.[0-9]{0,60})?|\.[0-9]{1,60})(?:[eE][+-]?[0-9]{1,4})?|Inf)|NaN"
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{PAIR},)*(?:{PAIR})?)\}})? ({NUMBER})(?: -?[0-9]{{1,20}})?")
LABEL = re.compile(PAIR)
FAMILY = re.compile(rf"# (?:HELP ({NAME})(?: .*)?|TYPE ({NAME}) (counter|gauge|histogram|summary|untyped|unknown))")
SUFFIXES = {"histogram": ("_count", "_sum", "_bucket"), "summary": ("_count", "_sum", "")}
REMARK = re.compile(r'#(?: (?!\s*(?:HELP|TYPE))[^"]*)?')


def read_samples(text: str) -> Iterator[tuple[str, Labels, str]]:
    """Name, labels in order, and value of each sample; a counter without `_total` is called so, as its readers do."""
    family, kind = "", ""
    for line in (line.removesuffix("\r") for line in text.split("\n")):
        if (head := FAMILY.fullmatch(line)) is not None:
            named = head[1] or head[2]
            family, kind = named, head[3] or (kind if named == family else "")
        elif (sample := SAMPLE.fullmatch(line)) is not None:
            labels = tuple(sorted(LABEL.findall(sample[2] or "")))
            if len(dict(labels)) != len(labels):
                raise ValueError(f"a label twice: {line[:160]}")
            if sample[1] != family and not (kind in SUFFIXES and sample[1] in (family + end for end in SUFFIXES[kind])):
                family, kind = "", ""
            is_renamed = kind == "counter" and sample[1] == family and not family.endswith("_total")
            yield sample[1] + "_total" * is_renamed, labels, sample[sample.re.groups]
        elif line and REMARK.fullmatch(line) is None:
            raise ValueError(f"no line of Prometheus text: {line[:160]}")
