"""Writes a new campaign: a commented preregistration, with a host profile and a suite where there are none."""

import re
from pathlib import Path

from labctl.codes import Code
from labctl.durable import make_folders, write_once
from labctl.errors import Problem, Refused
from labctl.prereg.load import load_host_profile, load_suite
from labctl.prereg.suite import Suite

_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")

_HOST = """\
# yaml-language-server: $schema=../../schemas/host.schema.json
labctl: 1
kind: host
id: this-machine
roots: # a relative path starts at the top of the campaign repository
  authorization: .labctl/authorization
  runs: .labctl/runs
  analyses: .labctl/analyses
  scratch: .labctl/scratch # emptied by labctl, so give it nothing else
storage:
  allowed: [ext4, xfs, btrfs, zfs, overlay, tmpfs] # overlay and tmpfs count for class exploratory only
  min_free_mib: 256
network: {address: 127.0.0.1, port: 0} # 0: a free port for each start
idle: {window_s: 1, max_cpu_percent: 100}
interpreters:
  embedded: self # the interpreter that runs labctl; add the one of your engine by its path
"""

_SUITE = """\
# yaml-language-server: $schema=../../schemas/suite.schema.json
labctl: 1
kind: suite
id: first-prompts
prompts: # asked once each, in this order, of every start
  - {id: p01, text: "Once upon a time there was a small house near the river, and in the house lived"}
  - {id: p02, text: "The cat sat on the mat. The dog sat on the mat. The cat and the dog"}
"""

_CAMPAIGN = """\
# yaml-language-server: $schema=../../schemas/preregistration.schema.json
labctl: 1
kind: endpoint
id: {id}
title: One line that says what this campaign is
author: Your Name <you@example.org> # cannot review
question: What is this campaign to answer?
expectation: {{effect_percent: [1, 50]}} # said in advance, scored afterwards, never a gate
class: exploratory # exploratory | calibration | comparison | record
host: {host}
interpreter: {interpreter} # a key of the host profile
service: # both arms run this, and nothing ambient gets in
  engine: reference # the embedded endpoint; replace it and the command by your engine's
  command: ["{{python}}", -P, -m, labctl.servers.reference, --host, "{{host}}", --port, "{{port}}",
            --served-model-name, "labctl-{{nonce}}"]
  environment: {{}}
  ready: {{timeout_s: 60}}
treatment: # the sole difference between A and B: an argument or an environment variable
  argument: --speculative-config
  control: null # absent
  candidate: '{{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}}'
  proof: {{counter: drafts, control: absent_or_zero, candidate: positive}}
workload: {{suite: {suite}, max_tokens: 128, temperature: 0, seed: 1, api: {api}}}
schedule: {{order: [A1, B1, B2, A2], stop_after_first_pair: true}}
oracle: first_control # or: {{teacher: oracles/NAME.json}}
gates: # what must hold; a gate that could not be evaluated has not passed
  - {{kind: exact_tokens}}
  - {{kind: cross_leg_exact}}
  - {{kind: cold, cached_tokens: 0, requests_per_start: {prompts}}}
  - {{kind: accounting}}
  - {{kind: clean_log, unknown_environment: fail}}
  - {{kind: pair, metric: decode_rate_conventional_1_100, min_row_wins: {wins}, min_headline_gain_percent: "1"}}
decision:
  headline: decode_rate_conventional_1_100
  reported_value: lower_candidate_start
reviews: {{required: 0, signatures: none}}
authorizes: [endpoint_run] # once, and nothing else
excluded: [submission, warm_up_generation, retry]
"""


def write_skeleton(folder: Path) -> list[Path]:
    """Write a campaign file into a folder below the campaigns root, and what it needs beside it; gives what it wrote.

    Raises:
        Refused: the campaign is there already (EXISTS), the folder's name is no campaign id (WRONG_VALUE), or the
            folder that the campaigns root is to be in is not there (NOT_FOUND).
        InvalidPreregistration: the host profile or the suite that is there already is wrong.
    """
    campaign, root = new_campaign_place(folder)
    host, is_new_host = first_host(root)
    suite, is_new_suite = _first_or_new(root / "suites", "first-prompts.yaml", _SUITE)
    text = _campaign(folder.absolute().name, host, suite)
    make_folders(folder)
    write_once(campaign, text.encode())
    return [*[host] * is_new_host, *[suite] * is_new_suite, campaign]


def new_campaign_place(folder: Path) -> tuple[Path, Path]:
    """The campaign file that may be written, and the campaigns root.

    Raises:
        Refused: the campaign is there already (EXISTS), the folder's name is no campaign id (WRONG_VALUE), or the
            folder that the campaigns root is to be in is not there (NOT_FOUND).
    """
    campaign, root = folder / "campaign.yaml", folder.absolute().parent
    if _ID.fullmatch(folder.absolute().name) is None:
        expected = "a folder named with lower-case letters, digits and hyphens"
        raise Refused(Problem(Code.WRONG_VALUE, str(folder), expected, folder.absolute().name, "choose another name"))
    if not root.parent.is_dir():
        do = "make it, or name a folder such as campaigns/my-idea inside a repository"
        raise Refused(Problem(Code.NOT_FOUND, str(folder), f"the folder {root.parent}", "none", do))
    if campaign.exists():
        raise Refused(Problem(Code.EXISTS, str(campaign), "a free name", "a file", "choose another folder"))
    return campaign, root


def first_host(root: Path) -> tuple[Path, bool]:
    """The first host profile below a campaigns root, and whether it was written now."""
    return _first_or_new(root / "hosts", "this-machine.yaml", _HOST)


def self_interpreter(host: Path) -> str:
    """The key of the interpreter that runs labctl, or else the first key of a host profile.

    Raises:
        InvalidPreregistration: the host profile is wrong.
    """
    interpreters = load_host_profile(host).model.interpreters
    return next((key for key, path in interpreters.items() if path == "self"), next(iter(interpreters)))


def _first_or_new(folder: Path, name: str, text: str) -> tuple[Path, bool]:
    if present := sorted([*folder.glob("*.yaml"), *folder.glob("*.yml")]):
        return present[0], False
    make_folders(folder)
    write_once(folder / name, text.encode())
    return folder / name, True


def _campaign(name: str, host: Path, suite: Path) -> str:
    prompts = load_suite(suite).model
    return _CAMPAIGN.format(
        id=name,
        host=f"hosts/{host.name}",
        interpreter=self_interpreter(host),
        suite=f"suites/{suite.name}",
        api=_api(prompts),
        prompts=len(prompts.prompts),
        wins=len(prompts.prompts) // 2 + 1,
    )


def _api(suite: Suite) -> str:
    return "completions" if suite.prompts[0].text is not None else "chat"
