"""A small campaign repository: a git work tree with a host profile, a suite and a campaign on the embedded endpoint.

`make_repository(folder)` commits one campaign of two prompts and eight tokens, four starts, about two seconds a start.
`CampaignRepository.labctl(...)` runs the command line in it as a user would; `.edit(...)` changes the campaign's
document and commits. Nothing outside the folder is written.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

GIT_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_AUTHOR_NAME": "Author",
    "GIT_AUTHOR_EMAIL": "author@example.org",
    "GIT_COMMITTER_NAME": "Author",
    "GIT_COMMITTER_EMAIL": "author@example.org",
    "HOME": os.devnull,
}
HOST = {
    "labctl": 1,
    "kind": "host",
    "id": "test-host",
    "roots": {
        "authorization": ".labctl/authorization",
        "runs": ".labctl/runs",
        "analyses": ".labctl/analyses",
        "scratch": ".labctl/scratch",
    },
    "storage": {
        "allowed": ["ext4", "xfs", "btrfs", "zfs", "overlay", "tmpfs"],
        "min_free_mib": 64,
        "trusted_anchor": ".labctl",
    },
    "network": {"address": "127.0.0.1", "port": 0},
    "idle": {"window_s": 0, "max_cpu_percent": 100},
    "interpreters": {"embedded": "self"},
}
SUITE = {
    "labctl": 1,
    "kind": "suite",
    "id": "two",
    "prompts": [
        {"id": "first", "text": "one two three one two three one two"},
        {"id": "second", "text": "the cat and the dog and the cat and"},
    ],
}
COMMAND = [
    "{python}",
    "-P",
    "-m",
    "labctl.servers.reference",
    "--host",
    "{host}",
    "--port",
    "{port}",
    "--served-model-name",
    "labctl-{nonce}",
]
CAMPAIGN: dict[str, object] = {
    "labctl": 1,
    "kind": "endpoint",
    "id": "small",
    "title": "A small campaign",
    "author": "Author <author@example.org>",
    "question": "Does the main job run?",
    "class": "exploratory",
    "host": "hosts/test-host.yaml",
    "interpreter": "embedded",
    "service": {"engine": "reference", "command": COMMAND, "ready": {"timeout_s": 60}},
    "treatment": {
        "argument": "--speculative-config",
        "control": None,
        "candidate": '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}',
        "proof": {"counter": "drafts", "control": "absent_or_zero", "candidate": "positive"},
    },
    "workload": {
        "suite": "suites/two.yaml",
        "max_tokens": 8,
        "temperature": 0,
        "seed": 1,
        "api": "completions",
        "ignore_eos": True,
    },
    "schedule": {"order": ["A1", "B1", "B2", "A2"]},
    "oracle": "first_control",
    "gates": [
        {"kind": "exact_tokens"},
        {"kind": "cross_leg_exact"},
        {"kind": "cold", "cached_tokens": 0, "requests_per_start": 2},
        {"kind": "clean_log", "unknown_environment": "fail"},
    ],
    "decision": {"headline": "wall_rate", "reported_value": "lower_candidate_start"},
    "reviews": {"required": 0, "signatures": "none"},
    "authorizes": ["endpoint_run"],
}


@dataclass(frozen=True, slots=True)
class CampaignRepository:
    """One git work tree with one campaign."""

    root: Path

    @property
    def campaign(self) -> Path:
        """The campaign file."""
        return self.root / "campaigns" / "small" / "campaign.yaml"

    @property
    def authorization(self) -> Path:
        """Packets, markers, ledger."""
        return self.root / ".labctl" / "authorization"

    def labctl(self, *arguments: str, timeout_s: float = 120) -> "subprocess.CompletedProcess[str]":
        """Run a command and wait for it."""
        return subprocess.run(
            command_line(*arguments),
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
            stdin=subprocess.DEVNULL,
        )

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command and do not wait."""
        return subprocess.Popen(
            command_line(*arguments),
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            stdin=subprocess.DEVNULL,
        )

    def freeze(self, *arguments: str) -> str:
        """Freeze the campaign; the packet's id."""
        answer = self.labctl("packet", "freeze", str(self.campaign), *arguments)
        if answer.returncode != 0:
            raise RuntimeError(answer.stderr)
        return answer.stdout.split()[1]

    def status(self) -> list[dict[str, Any]]:
        """What `labctl status --json` says."""
        found: list[dict[str, Any]] = json.loads(self.labctl("status", "--json").stdout)
        return found

    def edit(self, change: Callable[[dict[str, object]], None]) -> None:
        """Change the campaign's document and commit."""
        document = yaml.safe_load(self.campaign.read_text())
        change(document)
        write_yaml(self.campaign, document)
        self.commit()

    def commit(self) -> None:
        """Commit everything."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Change")

    def git(self, *arguments: str) -> str:
        """Run git with nothing ambient."""
        answer = subprocess.run(
            ["git", *arguments], cwd=self.root, env=GIT_ENVIRONMENT, capture_output=True, text=True, check=True
        )
        return answer.stdout.strip()


def command_line(*arguments: str) -> list[str]:
    """The command line of labctl in the interpreter that runs the tests."""
    return [sys.executable, "-m", "labctl", *arguments]


def make_repository(folder: Path) -> CampaignRepository:
    """A new repository with one commit, whose author is `author@example.org`."""
    repository = CampaignRepository(folder)
    write_yaml(folder / "campaigns" / "hosts" / "test-host.yaml", HOST)
    write_yaml(folder / "campaigns" / "suites" / "two.yaml", SUITE)
    write_yaml(repository.campaign, CAMPAIGN)
    (folder / ".gitignore").write_text("/.labctl/\n")
    repository.git("init", "-q", "-b", "main")
    repository.commit()
    return repository


def write_yaml(path: Path, document: object) -> None:
    """Write a YAML file, with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.dump(document, Dumper=_Quoting, sort_keys=False, width=1000))


class _Quoting(yaml.SafeDumper):
    """Quotes what only looks like a number to some readers: digests."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_digest = len(text) in (40, 64) and set(text) <= set("0123456789abcdef")
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if is_digest else None)


_Quoting.add_representer(str, _text)
