"""Rules between a preregistration and the files that it names."""

from collections.abc import Iterator

from labctl.codes import Code
from labctl.prereg.any_campaign import AnyPreregistration, CardPreregistration
from labctl.prereg.component_model import ComponentPreregistration
from labctl.prereg.finding import Anchor, Finding
from labctl.prereg.gate_kinds import Cold, Pair
from labctl.prereg.host_profile import HostProfile
from labctl.prereg.model import Api, CampaignClass, Preregistration
from labctl.prereg.noise import NoiseRecord
from labctl.prereg.places import TreePath
from labctl.prereg.rules.gates import TOKENS_OF_A_WINDOW, WINDOW_METRICS, gates_of
from labctl.prereg.rules.start_statistics import rows_are_sure, rows_suffice
from labctl.prereg.sources import GitSource
from labctl.prereg.suite import Oracle, Suite
from labctl.prereg.treatment_kinds import BinariesTreatment, EnvironmentTreatment
from labctl.prereg.words import nearest

GATES_OVER_TOKENS = frozenset({"exact_tokens", "long_then_next", "rollover", "moving_difference"})


def host_fits(preregistration: Preregistration, host: HostProfile) -> Iterator[Finding]:
    """Every key that a preregistration uses is one that the host profile has."""
    yield from _keys_fit(preregistration, host)
    for index, model in enumerate(preregistration.models):
        yield from _key(("models", index, "name"), model.name, "models", list(host.models))
    if isinstance(preregistration.treatment, BinariesTreatment):
        for side in ("control", "candidate"):
            key = getattr(preregistration.treatment, side)
            yield from _key(("treatment", side), key, "binaries", list(host.binaries))
    yield from _ambient_is_not_registered(preregistration, host)


def card_host_fits(said: CardPreregistration, host: HostProfile) -> Iterator[Finding]:
    """The same for a campaign without a server."""
    yield from _keys_fit(said, host)
    path: TreePath = ("environment",)
    environment = said.worker.environment if isinstance(said, ComponentPreregistration) else said.environment
    if isinstance(said, ComponentPreregistration):
        path = ("worker", "environment")
    for name in environment:
        if name in host.environment_passed:
            do = "remove it here or from `environment_passed`"
            expected = "a variable that the host profile does not pass on"
            yield Finding((*path, name), expected, name, do, anchor=Anchor.KEY)


def _keys_fit(said: AnyPreregistration, host: HostProfile) -> Iterator[Finding]:
    yield from _key(("interpreter",), said.interpreter, "interpreters", list(host.interpreters))
    for index, source in enumerate(said.sources):
        if isinstance(source, GitSource):
            yield from _key(("sources", index, "git"), source.git, "sources", list(host.sources))
    if said.campaign_class is CampaignClass.RECORD and host.remote is None:
        yield Finding(("host",), "a host profile with a `remote` for class record", "none", "add `remote` to it")


def _key(path: TreePath, key: str, field: str, known: list[str]) -> Iterator[Finding]:
    if key not in known:
        guess = nearest(key, known)
        do = f"did you mean `{guess}`?" if guess else "add it to the host profile"
        expected = f"a key of the host profile's `{field}` ({', '.join(known) or 'which is empty'})"
        yield Finding(path, expected, key, do, Code.WRONG_VALUE)


def _ambient_is_not_registered(preregistration: Preregistration, host: HostProfile) -> Iterator[Finding]:
    expected = "a variable that the host profile does not pass on"
    do = "remove it here or from `environment_passed`"
    for name in preregistration.service.environment:
        if name in host.environment_passed:
            yield Finding(("service", "environment", name), expected, name, do, anchor=Anchor.KEY)
    treatment = preregistration.treatment
    if isinstance(treatment, EnvironmentTreatment) and treatment.environment in host.environment_passed:
        yield Finding(("treatment", "environment"), expected, treatment.environment, do)


def noise_fits(preregistration: Preregistration, noise: NoiseRecord) -> Iterator[Finding]:
    """The noise is that of the metric whose effect is planned."""
    decision = preregistration.decision
    if decision is not None and noise.metric != decision.headline:
        expected, do = f"a noise record of {decision.headline}", "pool calibration runs of that metric"
        yield Finding(("power", "noise_record"), expected, noise.metric, do)


def suite_fits(preregistration: Preregistration, suite: Suite) -> Iterator[Finding]:
    """The counts and the interface of a preregistration are those of its suite."""
    count = len(suite.prompts)
    for path, cold in gates_of(preregistration, Cold):
        if cold.requests_per_start != count:
            got, do = str(cold.requests_per_start), f"write {count}"
            yield Finding((*path, "requests_per_start"), f"{count}, the prompts of the suite", got, do)
    for path, pair in gates_of(preregistration, Pair):
        if pair.min_row_wins > count:
            got = str(pair.min_row_wins)
            yield Finding((*path, "min_row_wins"), f"at most {count}, the prompts of the suite", got, "lower it")
    yield from rows_suffice(preregistration, suite)
    yield from rows_are_sure(preregistration, suite)
    wanted = "text" if preregistration.workload.api is Api.COMPLETIONS else "messages"
    if others := [prompt.id for prompt in suite.prompts if getattr(prompt, wanted) is None]:
        expected = f"prompts with `{wanted}` for api {preregistration.workload.api}"
        got = f"{len(others)} without, the first {others[0]}"
        yield Finding(("workload", "api"), expected, got, "choose the other api, or another suite")


def oracle_fits(preregistration: Preregistration, suite: Suite, suite_sha256: str, oracle: Oracle) -> Iterator[Finding]:
    """A teacher was asked the same prompts in the same way."""
    path, workload = ("oracle", "teacher"), preregistration.workload
    for key in ("api", "max_tokens", "ignore_eos"):
        if getattr(oracle, key) != getattr(workload, key):
            expected = f"a teacher made with {key} {_word(getattr(workload, key))}"
            yield Finding(path, expected, _word(getattr(oracle, key)), "make the oracle anew")
    if oracle.suite_sha256 != suite_sha256:
        expected = f"a teacher of the suite {suite_sha256[:12]}"
        yield Finding(path, expected, oracle.suite_sha256[:12], "make the oracle anew")
    elif [row.prompt for row in oracle.rows] != [prompt.id for prompt in suite.prompts]:
        got = "other rows, or another order"
        yield Finding(path, "one row a prompt, in the suite's order", got, "make the oracle anew")
    yield from _gates_can_compare(preregistration, oracle)
    yield from _rows_are_long_enough(preregistration, oracle)


def _gates_can_compare(preregistration: Preregistration, oracle: Oracle) -> Iterator[Finding]:
    """A gate over tokens needs a teacher that holds token ids, and one over text a teacher that holds text."""
    has_tokens = all(row.token_ids is not None for row in oracle.rows)
    has_text = all(row.text_sha256 is not None for row in oracle.rows)
    for index, gate in enumerate(preregistration.gates):
        path: TreePath = ("gates", index, "kind")
        if gate.kind in GATES_OVER_TOKENS and not has_tokens:
            do = "use gate exact_text, or a teacher that holds them"
            yield Finding(path, "a teacher that holds token ids", "rows without", do)
        if gate.kind == "exact_text" and not has_text:
            do = "use gate exact_tokens, or a teacher that holds them"
            yield Finding(path, "a teacher that holds digests of texts", "rows without", do)


def _rows_are_long_enough(preregistration: Preregistration, oracle: Oracle) -> Iterator[Finding]:
    """A rate over tokens 1 to 100 does not exist for a row that the teacher itself ends earlier."""
    metrics = {gate.metric for gate in preregistration.gates if isinstance(gate, Pair)}
    metrics |= {preregistration.decision.headline} if preregistration.decision else set()
    wanted = sorted(metrics & WINDOW_METRICS)
    known = [(row.prompt, len(row.token_ids)) for row in oracle.rows if row.token_ids is not None]
    short = [(prompt, count) for prompt, count in known if count < TOKENS_OF_A_WINDOW]
    if wanted and short:
        got = f"{short[0][1]} tokens for prompt {short[0][0]} ({len(short)} short rows)"
        do = "set ignore_eos and make the oracle anew, or choose decode_rate_full or wall_rate"
        yield Finding(("oracle", "teacher"), f"{TOKENS_OF_A_WINDOW} tokens a row for {wanted[0]}", got, do)


def _word(value: object) -> str:
    return str(value).lower()
