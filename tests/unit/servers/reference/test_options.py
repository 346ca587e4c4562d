import argparse

import pytest

from labctl.servers.reference.options import read_options, read_speculation
from labctl.servers.reference.speculation import PromptLookup


def test_the_options_of_a_campaign_are_read() -> None:
    flags = ["--no-enable-prefix-caching", "--enable-prompt-tokens-details"]
    named = ["--host", "127.0.0.1", "--port", "8123", "--served-model-name", "n", "--max-model-len", "512"]
    speculation = '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4,"prompt_lookup_min":2}'
    options = read_options([*named, *flags, "--speculative-config", speculation])
    assert (options.host, options.port, options.served_model_name, options.max_model_len) == (
        "127.0.0.1",
        8123,
        "n",
        512,
    )
    assert options.speculation == PromptLookup(4, longest=4, shortest=2)
    assert (options.prefix_caching, options.prompt_tokens_details) == ("off", "on")


def test_without_options_nothing_is_drafted_and_nothing_is_cached() -> None:
    options = read_options([])
    assert options.speculation is None
    assert options.prefix_caching == "off"


@pytest.mark.parametrize(
    ("lengths", "expected"),
    [("", (5, 5)), (',"prompt_lookup_max":4', (4, 4)), (',"prompt_lookup_min":3', (3, 3))],
)
def test_a_missing_match_length_is_filled_in_as_vllm_does(lengths: str, expected: tuple[int, int]) -> None:
    lookup = read_speculation('{"method":"ngram","num_speculative_tokens":2' + lengths + "}")
    assert (lookup.longest, lookup.shortest) == expected


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        "{}",
        '{"method":"eagle","num_speculative_tokens":2}',
        '{"method":"ngram"}',
        '{"method":"ngram","num_speculative_tokens":0}',
        '{"method":"ngram","num_speculative_tokens":8}',
        '{"method":"ngram","num_speculative_tokens":true}',
        '{"method":"ngram","num_speculative_tokens":2,"prompt_lookup_max":1,"prompt_lookup_min":2}',
        '{"method":"ngram","num_speculative_tokens":2,"model":"x"}',
    ],
)
def test_speculation_that_the_server_cannot_do_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        read_speculation(text)


@pytest.mark.parametrize(
    "arguments", [["--port", "70000"], ["--max-model-len", "1"], ["--serve", "x"], ["--dtype", "half"]]
)
def test_an_unknown_or_impossible_option_ends_with_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        read_options(arguments)
    assert caught.value.code == 2
    assert arguments[0] in capsys.readouterr().err
