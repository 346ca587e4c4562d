import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from labctl.servers.reference.decoder import Decoder, new_cache
from labctl.servers.reference.generation import EndMark, Finish, Limits, Step, generate
from labctl.servers.reference.speculation import PromptLookup
from labctl.servers.reference.tokens import END_OF_TEXT, encode_text

SUITE = Path(__file__).parents[4] / "campaigns" / "suites" / "thirteen.yaml"
PROMPTS: list[str] = [prompt["text"] for prompt in yaml.safe_load(SUITE.read_text())["prompts"]]
LOOKUP = PromptLookup(4, longest=4, shortest=2)
TOKENS = 128
EXPECTED_SHA256 = "77a78d9d9fd38e014a12f02bf62591f9f5f39300877dba6d2e0aacc47e5f7244"


def steps_of(decoder: Decoder, text: str, limits: Limits, lookup: PromptLookup | None) -> list[Step]:
    prompt = encode_text(text)
    return list(generate(decoder, prompt, new_cache(len(prompt) + limits.max_tokens), limits, lookup))


def tokens_of(steps: list[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


@pytest.fixture(scope="module")
def plain(decoder: Decoder) -> list[list[Step]]:
    return [steps_of(decoder, text, Limits(TOKENS, EndMark.STOPS), None) for text in PROMPTS]


@pytest.fixture(scope="module")
def drafted(decoder: Decoder) -> list[list[Step]]:
    return [steps_of(decoder, text, Limits(TOKENS, EndMark.STOPS), LOOKUP) for text in PROMPTS]


def test_drafts_change_no_token(plain: list[list[Step]], drafted: list[list[Step]]) -> None:
    assert [tokens_of(steps) for steps in drafted] == [tokens_of(steps) for steps in plain]


def test_the_suite_gives_the_same_tokens_on_every_machine(plain: list[list[Step]]) -> None:
    rows = json.dumps([tokens_of(steps) for steps in plain]).encode()
    assert hashlib.sha256(rows).hexdigest() == EXPECTED_SHA256


def test_every_row_of_the_suite_runs_to_its_length(plain: list[list[Step]]) -> None:
    assert {len(tokens_of(steps)) for steps in plain} == {TOKENS}
    assert {steps[-1].finish for steps in plain} == {Finish.LENGTH}


def test_no_row_dies_in_a_short_cycle(plain: list[list[Step]]) -> None:
    for steps in plain:
        tokens = tokens_of(steps)
        second_half = tokens[TOKENS // 2 :]
        for period in range(1, 17):
            assert second_half[period:] != second_half[:-period], (period, tokens)


def test_every_prompt_gets_its_own_output(plain: list[list[Step]]) -> None:
    assert len({tuple(tokens_of(steps)[:32]) for steps in plain}) == len(PROMPTS)


def test_drafts_are_accepted_at_a_middling_rate_in_every_row(drafted: list[list[Step]]) -> None:
    every = [step for steps in drafted for step in steps]
    assert 0.25 < sum(step.accepted for step in every) / sum(step.drafted for step in every) < 0.75
    assert all(sum(step.accepted for step in steps) > TOKENS // 4 for steps in drafted)


def test_every_draft_is_whole_and_every_accepted_token_is_sent(drafted: list[list[Step]]) -> None:
    for steps in drafted:
        assert {step.drafted for step in steps} == {0, LOOKUP.draft_tokens}
        assert len(steps) + sum(step.accepted for step in steps) == TOKENS


@pytest.fixture(scope="module")
def eager_to_end(decoder: Decoder) -> Decoder:
    bias = decoder.weights.bias.copy()
    bias[END_OF_TEXT] = 0
    return Decoder(replace(decoder.weights, bias=bias))


def test_the_end_mark_stops_a_row(eager_to_end: Decoder) -> None:
    plain, drafted = (
        steps_of(eager_to_end, text, Limits(TOKENS, EndMark.STOPS), lookup)
        for text, lookup in ((PROMPTS[0], None), (PROMPTS[0], LOOKUP))
    )
    assert tokens_of(plain) == tokens_of(drafted)
    assert plain[-1].finish is drafted[-1].finish is Finish.STOP
    assert tokens_of(plain).index(END_OF_TEXT) == len(tokens_of(plain)) - 1


def test_an_ignored_end_mark_does_not_stop_a_row(eager_to_end: Decoder) -> None:
    stopped = tokens_of(steps_of(eager_to_end, PROMPTS[0], Limits(TOKENS, EndMark.STOPS), None))
    ignored = tokens_of(steps_of(eager_to_end, PROMPTS[0], Limits(TOKENS, EndMark.IGNORED), LOOKUP))
    assert len(ignored) == TOKENS
    assert ignored[: len(stopped)] == stopped


@pytest.mark.parametrize("max_tokens", [1, 2, 5, 6])
def test_a_row_is_never_longer_than_asked(decoder: Decoder, max_tokens: int) -> None:
    steps = steps_of(decoder, "the cat and the dog and the cat and the dog", Limits(max_tokens, EndMark.STOPS), LOOKUP)
    assert len(tokens_of(steps)) == max_tokens
    assert steps[-1].finish is Finish.LENGTH
