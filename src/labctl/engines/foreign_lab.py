"""What a lab that measures by hand calls the files, keys and log lines of one start's folder."""

from labctl.engines import vllm
from labctl.engines.vocabulary import EngineVocabulary

BENCH = "bench.json"
BENCH_EXTRACT = "bench.json.extract.json"
EXACTNESS = "exactness-vs-q1.json"
BEFORE, AFTER = "metrics-before-suite.prom", "metrics-after-suite.prom"
IDENTITY = "identity.txt"
ENVIRONMENT = "service-environment.txt"
LOG = "server.log"
STATUS, CLEANUP = "status.txt", "cleanup-status.txt"
IDLE_BEFORE, IDLE_AFTER = "pre-idle.json", "post-idle.json"
INTERVAL = "idle-interval"
INTERVAL_SUMMARY = f"{INTERVAL}/summary.txt"
FOLDER_DIGESTS = ".sha256"
"""Beside a folder lies its list of digests, under the folder's name with this at its end."""
FILES_OF_A_START = frozenset(
    {
        *(BENCH, BENCH_EXTRACT, EXACTNESS, BEFORE, AFTER, IDENTITY, ENVIRONMENT, LOG, STATUS, CLEANUP),
        *(IDLE_BEFORE, IDLE_AFTER),
    }
)
"""A folder that holds none of these is no start's."""

DRAFT_LENGTH = "num_speculative_tokens"
NOT_A_RECORD = "measurement_leg_not_record_leg"
EXPECTED_TOPOLOGY = {"graphs": "expected_num_graphs", "eager_breaks": "expected_num_eager_breaks"}
"""Groups of the topology's line, by the identity's keys that say what they must hold."""

TOPOLOGY = (
    r"TP(?P<rank>[0-9]+)\S* pid=.*\b(?P<event>Captured|Replayed) audited .*"
    r"graphs=(?P<graphs>[0-9]+), eager_breaks=(?P<eager_breaks>[0-9]+)"
)
COMPILED_WHILE_SERVING = r"JIT compilation during inference: (?P<kernel>\w+)"
UNKNOWN_VARIABLE = vllm.UNKNOWN_ENVIRONMENT + r": (?P<name>\w+)"
SERVER_VERSION = r"\bversion (?P<version>[0-9]+\.[0-9A-Za-z.+-]*)"
LEAKED_MEMORY = r"leaked shared_memory objects"

TOKEN_ORACLE_SCHEMA = "laguna-q1-token-oracle-v1"  # noqa: S105 (a format, no password)
TEXT_ORACLE_SCHEMA = "laguna-q1-text-sha256-oracle-v1"


def vocabulary() -> EngineVocabulary:
    """What the lab's engine calls its counters, as far as labctl knows: the names of the newest version it knows."""
    found = vllm.resolve_vocabulary(f"0.{vllm.LAST_MINOR}.0")
    if found is None:
        message = "the engine's newest known version is not known"
        raise RuntimeError(message)
    return found
