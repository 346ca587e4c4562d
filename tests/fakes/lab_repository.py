"""A campaign repository for tests: a real git repository with one small campaign on the embedded endpoint.

    repository = LabRepository.create(tmp_path / "lab")
    repository.edit("campaigns/quick/campaign.yaml", "class: exploratory", "class: calibration")
    repository.commit("Change the class")

`campaign` is the path of the campaign file; `git` runs a git command there; `write` and `edit` change files without
committing. Nothing of the user's git configuration is read.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

AUTHOR = "Lab One <lab@example.org>"
GIT_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "Lab One",
    "GIT_AUTHOR_EMAIL": "lab@example.org",
    "GIT_COMMITTER_NAME": "Committer Two",
    "GIT_COMMITTER_EMAIL": "Committer@Example.org",
}
FILES = {
    ".gitignore": "/.labctl/\n",
    "README.md": "A lab.\n",
    "campaigns/hosts/any-cpu.yaml": """\
labctl: 1
kind: host
id: any-cpu
roots:
  authorization: .labctl/authorization
  runs: .labctl/runs
  analyses: .labctl/analyses
  scratch: .labctl/scratch
storage:
  allowed: [ext4, xfs, btrfs, zfs, overlay, tmpfs]
network: {address: 127.0.0.1, port: 0}
idle: {window_s: 0, max_cpu_percent: 100}
interpreters:
  embedded: self
sources: {}
models: {}
""",
    "campaigns/suites/two.yaml": """\
labctl: 1
kind: suite
id: two
prompts:
  - {id: one, text: "a b a b"}
  - {id: two, text: "b a b a"}
""",
    "campaigns/quick/campaign.yaml": """\
labctl: 1
kind: endpoint
id: quick
title: Prompt lookup on the embedded endpoint
author: Lab One <lab@example.org>
question: Does prompt lookup raise the decode rate without changing a token?
class: exploratory
host: hosts/any-cpu.yaml
interpreter: embedded
service:
  engine: reference
  command: ["{python}", -P, -m, labctl.servers.reference, --host, "{host}", --port, "{port}",
            --served-model-name, "labctl-{nonce}"]
  ready: {timeout_s: 60}
treatment:
  argument: --speculative-config
  control: null
  candidate: '{"method":"ngram","num_speculative_tokens":4,"prompt_lookup_max":4}'
  proof: {counter: drafts, control: absent_or_zero, candidate: positive}
workload: {suite: suites/two.yaml, max_tokens: 128, temperature: 0, seed: 1, api: completions}
schedule: {order: [A1, B1, B2, A2], stop_after_first_pair: true}
oracle: first_control
gates:
  - {kind: exact_tokens}
  - {kind: cross_leg_exact}
  - {kind: cold, cached_tokens: 0, requests_per_start: 2}
  - {kind: accounting}
  - {kind: clean_log, unknown_environment: fail}
  - {kind: pair, metric: decode_rate_conventional_1_100, min_row_wins: 1, min_headline_gain_percent: "1"}
decision:
  headline: decode_rate_conventional_1_100
  reported_value: lower_candidate_start
reviews: {required: 0, signatures: none}
authorizes: [endpoint_run]
""",
}


@dataclass(frozen=True, slots=True)
class LabRepository:
    """One repository on disk."""

    top: Path

    @classmethod
    def create(cls, top: Path, *, object_format: str = "sha1") -> "LabRepository":
        """A new repository with its files in one commit."""
        top.mkdir()
        repository = cls(top)
        repository.git("init", "--quiet", f"--object-format={object_format}", "--initial-branch=main")
        for path, text in FILES.items():
            repository.write(path, text)
        repository.commit("Start")
        return repository

    @property
    def campaign(self) -> Path:
        """The campaign file."""
        return self.top / "campaigns/quick/campaign.yaml"

    @property
    def head(self) -> str:
        """The full id of the commit that is checked out."""
        return self.git("rev-parse", "HEAD")

    def write(self, path: str, text: str) -> Path:
        """Write one file."""
        file = self.top / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace one text, which must be there, in one file."""
        text = (self.top / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def edit_campaign(self, old: str, new: str) -> None:
        """Replace one text of the campaign file."""
        self.edit("campaigns/quick/campaign.yaml", old, new)

    def commit(self, subject: str) -> str:
        """Commit every change; the full id."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", subject)
        return self.head

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """What a git command prints."""
        answer = subprocess.run(
            ["git", "-C", str(self.top), *arguments], input=stdin, env=GIT_ENVIRONMENT, check=True, capture_output=True
        )
        return answer.stdout.decode().strip()
