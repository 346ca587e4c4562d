"""The ledger's mirror: an outside witness, in the git ref `refs/labctl/ledger` of the host profile's remote.

The ref's tree holds one file for each authorization root of each machine, so that machines which share a remote do not
overwrite each other. A mirror is only ever extended: what is there must be the beginning of what is here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from labctl.codes import Code
from labctl.digest import sha256_hex
from labctl.durable import read_regular
from labctl.errors import AlreadyConsumed, BrokenEvidence, DirtySource, Problem, RunFailed
from labctl.host.boot import machine_id_sha256
from labctl.ledger import MAX_BYTES
from labctl.packet.git_command import run_git
from labctl.packet.git_objects import ObjectReader
from labctl.records.marker import LedgerLine
from labctl.rundir import AuthorizationPaths

REF = "refs/labctl/ledger"
_AUTHOR = ("-c", "user.name=labctl", "-c", "user.email=labctl@localhost")


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What a remote shows: the ref's commit, and each ledger's bytes by file name."""

    tip: str | None
    ledgers: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class LedgerMirror:
    """The mirror of one authorization root's ledger on one remote."""

    repository: Path
    remote: str
    authorization: AuthorizationPaths

    @property
    def name(self) -> str:
        """The file in the ref's tree: this machine and this root, by digest."""
        return f"{sha256_hex(f'{machine_id_sha256()}:{self.authorization.root.resolve()}'.encode())[:32]}.jsonl"

    def read(self) -> Mirrored:
        """What the remote shows now.

        Raises:
            DirtySource: the remote does not answer, or its objects are not what their ids say.
        """
        shown = run_git(self.repository, "ls-remote", self.remote, REF).decode("utf-8", "replace").split()
        if not shown:
            return Mirrored(None, {})
        run_git(self.repository, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", self.remote, REF)
        with ObjectReader(self.repository) as reader:
            ledgers = {file.path: reader.read(file.blob, "blob") for file in reader.files(shown[0])}
        return Mirrored(shown[0], ledgers)

    def require_agreement(self, packet_id: str) -> int:
        """The mirror continues in the ledger here, and no machine has mirrored a consumption of the packet; its lines.

        Raises:
            AlreadyConsumed: the packet was consumed, here or on another machine (CONSUMED).
            BrokenEvidence: the ledger here lacks lines of the mirror, or the mirror is malformed (LEDGER_BROKEN).
            DirtySource: see `read`.
        """
        mirrored = self.read()
        self._require_prefix(mirrored)
        lines = [(name, line) for name, data in mirrored.ledgers.items() for line in self._lines(name, data)]
        for name, line in lines:
            if line.event == "consumed" and line.packet_sha256 == packet_id:
                do = "freeze the next attempt (`labctl packet freeze --follows ID`)"
                got = f"line {line.seq} of {name} for run {line.run_dir}"
                raise AlreadyConsumed(Problem(Code.CONSUMED, f"{REF} on {self.remote}", "an unspent packet", got, do))
        return len(lines)

    def prove_writable(self) -> None:
        """Ask the remote whether it would take a push, without one.

        Raises:
            DirtySource: it would not (BAD_COMMIT).
        """
        run_git(self.repository, "push", "--quiet", "--dry-run", self.remote, f"HEAD:{REF}-preflight")

    def publish(self) -> None:
        """Push the ledger as it is now.

        Raises:
            RunFailed: it could not be pushed (WRITE_FAILED), or is not a continuation of the mirror (LEDGER_BROKEN).
        """
        try:
            mirrored = self.read()
            self._require_prefix(mirrored)
            self._push(mirrored)
        except DirtySource as error:
            do = f"the packet is spent and its record is on disk; repair {self.remote}, the next run mirrors it"
            got = "; ".join(problem.got for problem in error.problems)
            where = f"{REF} on {self.remote}"
            raise RunFailed(Problem(Code.WRITE_FAILED, where, "the ledger mirrored", got, do)) from error
        except BrokenEvidence as error:
            raise RunFailed(error.problems) from error

    def _push(self, mirrored: Mirrored) -> None:
        files = mirrored.ledgers | {self.name: self._own()}
        if files == mirrored.ledgers:
            return
        tree = run_git(self.repository, "mktree", stdin="".join(self._entries(files)).encode()).decode().strip()
        parent = () if mirrored.tip is None else ("-p", mirrored.tip)
        message = f"Ledger {self.name}: {len(files[self.name].splitlines())} lines"
        made = run_git(self.repository, *_AUTHOR, "commit-tree", tree, *parent, "-m", message)
        commit = made.decode().strip()
        # the lease makes it one step: whoever else pushed since `read` is not overwritten
        lease = f"--force-with-lease={REF}:{mirrored.tip or ''}"
        run_git(self.repository, "push", "--quiet", lease, self.remote, f"{commit}:{REF}")
        run_git(self.repository, "update-ref", REF, commit)

    def _entries(self, files: dict[str, bytes]) -> Iterator[str]:
        for name, data in files.items():
            blob = run_git(self.repository, "hash-object", "-w", "--stdin", "--no-filters", stdin=data)
            yield f"100644 blob {blob.decode().strip()}\t{name}\n"

    def _require_prefix(self, mirrored: Mirrored) -> None:
        if not self._own().startswith(mirrored.ledgers.get(self.name, b"")):
            do = f"restore it from {REF}; its lines were removed or changed here"
            where, expected = str(self.authorization.ledger), f"the lines that {self.remote} has seen, then new ones"
            raise BrokenEvidence(Problem(Code.LEDGER_BROKEN, where, expected, "others", do))

    def _own(self) -> bytes:
        path = self.authorization.ledger
        return read_regular(path, limit_bytes=MAX_BYTES) if path.exists() else b""

    def _lines(self, name: str, data: bytes) -> Iterator[LedgerLine]:
        for number, raw in enumerate(data.splitlines(keepends=True), start=1):
            try:
                yield LedgerLine.from_json(raw, f"{name}:{number}")
            except BrokenEvidence as error:
                do, where = "find out who wrote there", f"{REF} on {self.remote}: {name}:{number}"
                got = error.problems[0].got
                raise BrokenEvidence(Problem(Code.LEDGER_BROKEN, where, "a ledger line", got, do)) from error
