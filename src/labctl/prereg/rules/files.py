"""Rules within host profiles, suites and oracles."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from labctl.codes import Code
from labctl.prereg.environment import holds_password, objection_to
from labctl.prereg.finding import Finding
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.rules.cards import named_cards_are_counted
from labctl.prereg.suite import Oracle, Suite


def host_findings(host: HostProfile) -> Iterator[Finding]:
    """Everything that contradicts itself within a host profile."""
    yield from _roots_are_apart(host)
    if host.remote is not None and holds_password(host.remote):
        do = "name a remote of the repository, such as origin; credentials stay with git"
        yield Finding(("remote",), "no user or password in a file that is published", "an address with one", do)
    for index, name in enumerate(host.environment_passed):
        path = ("environment_passed", index)
        if objection := objection_to(name):
            yield Finding(path, "a harmless variable", f"{name}, {objection}", "remove it")
        if name in host.environment_passed[:index]:
            yield Finding(path, "each name once", f"{name} again", "remove it")
    if host.devices is not None and host.devices.idle_cards is not None:
        yield from named_cards_are_counted(("devices", "idle_cards"), host.devices.idle_cards)


def _roots_are_apart(host: HostProfile) -> Iterator[Finding]:
    roots = {name: PurePosixPath(path) for name, path in host.roots.model_dump().items()}
    for name, path in roots.items():
        for other, outer in roots.items():
            if name != other and path.is_relative_to(outer) and (path != outer or name > other):
                expected = "a root outside every other root"
                yield Finding(("roots", name), expected, f"{path}, inside `{other}`", "give it a folder of its own")


def suite_findings(suite: Suite) -> Iterator[Finding]:
    """Everything that contradicts itself within a suite."""
    seen: set[str] = set()
    for index, prompt in enumerate(suite.prompts):
        if prompt.id in seen:
            yield Finding(("prompts", index, "id"), "prompt ids that differ", f"{prompt.id} again", "rename it")
        seen.add(prompt.id)
        if (prompt.text is None) == (prompt.messages is None):
            got = "neither" if prompt.text is None else "both"
            yield Finding(("prompts", index), "one of `text` and `messages`", got, "keep one of them")


def oracle_findings(oracle: Oracle) -> Iterator[Finding]:
    """Everything that contradicts itself within an oracle."""
    seen: set[str] = set()
    for index, row in enumerate(oracle.rows):
        if row.prompt in seen:
            yield Finding(("rows", index, "prompt"), "each prompt once", f"{row.prompt} again", "make the oracle anew")
        seen.add(row.prompt)
        if row.token_ids is None and row.text_sha256 is None:
            do = "name what the row must give"
            yield Finding(("rows", index), "token ids, or a digest of the text", "neither", do)
        count = oracle.max_tokens if row.token_ids is None else len(row.token_ids)
        if count > oracle.max_tokens or (row.finish_reason == "length" and count < oracle.max_tokens):
            expected = f"{oracle.max_tokens} tokens, or fewer and finish reason stop"
            path = ("rows", index, "token_ids")
            got = f"{count} in row {row.prompt}"
            yield Finding(path, expected, got, "make the oracle anew", Code.WRONG_VALUE)
