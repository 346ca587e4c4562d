"""The command line: the few options of vLLM's that the server honours, and a complaint about any other.

Two defaults are not vLLM's: prefix caching is off, and usage tells how many prompt tokens came from a cache.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from labctl.servers.reference.speculation import PromptLookup

LARGEST_MODEL_LEN = 4096
_LARGEST_DRAFT = 7
_DEFAULT_LOOKUP = 5
_SPECULATION_KEYS = {"method", "num_speculative_tokens", "prompt_lookup_max", "prompt_lookup_min"}

Switch = Literal["on", "off"]


@dataclass(frozen=True, slots=True)
class Options:
    """What the server was told."""

    host: str
    port: int
    served_model_name: str
    max_model_len: int
    speculation: PromptLookup | None
    prefix_caching: Switch
    prompt_tokens_details: Switch


def read_options(arguments: Sequence[str]) -> Options:
    """Parse the command line; ends the process with status 2 on a fault, as argparse does."""
    parser = argparse.ArgumentParser(prog="python -m labctl.servers.reference", allow_abbrev=False, description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=_number(0, 65535), default=8000)
    parser.add_argument("--served-model-name", default="reference")
    parser.add_argument("--max-model-len", type=_number(2, LARGEST_MODEL_LEN), default=LARGEST_MODEL_LEN)
    parser.add_argument("--speculative-config", type=read_speculation, default=None)
    parser.add_argument("--enable-prefix-caching", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--enable-prompt-tokens-details", action=argparse.BooleanOptionalAction, default=True)
    parsed = parser.parse_args(arguments)
    return Options(
        host=parsed.host,
        port=parsed.port,
        served_model_name=parsed.served_model_name,
        max_model_len=parsed.max_model_len,
        speculation=parsed.speculative_config,
        prefix_caching="on" if parsed.enable_prefix_caching else "off",
        prompt_tokens_details="on" if parsed.enable_prompt_tokens_details else "off",
    )


def read_speculation(text: str) -> PromptLookup:
    """Read vLLM's JSON for prompt lookup; one of the two match lengths stands for both, and neither means 5.

    Raises:
        argparse.ArgumentTypeError: naming the fault.
    """
    try:
        settings = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"not JSON: {error}") from error
    if not isinstance(settings, dict) or set(settings) - _SPECULATION_KEYS or settings.get("method") != "ngram":
        keys = ", ".join(sorted(_SPECULATION_KEYS))
        raise argparse.ArgumentTypeError(f'expected an object with "method": "ngram" and only {keys}')
    count = _positive(settings, "num_speculative_tokens", None)
    longest = _positive(settings, "prompt_lookup_max", settings.get("prompt_lookup_min", _DEFAULT_LOOKUP))
    shortest = _positive(settings, "prompt_lookup_min", longest)
    if count > _LARGEST_DRAFT or shortest > longest:
        message = f"expected at most {_LARGEST_DRAFT} draft tokens, and a shortest match not above the longest"
        raise argparse.ArgumentTypeError(message)
    return PromptLookup(count, longest, shortest)


def _positive(settings: dict[str, object], key: str, default: object) -> int:
    number = settings.get(key, default)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise argparse.ArgumentTypeError(f"expected a positive whole number as {key}, got {number!r}")
    return number


def _number(smallest: int, largest: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        value = int(text)
        if not smallest <= value <= largest:
            raise argparse.ArgumentTypeError(f"expected {smallest} to {largest}, got {value}")
        return value

    return number
