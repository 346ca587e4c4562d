"""Every problem that labctl can name: one closed list, one meaning each."""

from enum import StrEnum


class Code(StrEnum):
    """A stable name for one kind of problem; tests, documents and scripts rely on it."""

    # Campaign files (YAML, JSON inputs)
    NOT_TEXT = "NOT_TEXT"  # not UTF-8, or a byte order mark, control or bidirectional character
    TOO_LARGE = "TOO_LARGE"  # over the size, depth, node or number bounds
    YAML_SYNTAX = "YAML_SYNTAX"  # does not scan as YAML
    YAML_FEATURE = "YAML_FEATURE"  # anchor, alias, merge key, tag, directive, second document
    DUPLICATE_KEY = "DUPLICATE_KEY"
    AMBIGUOUS_SCALAR = "AMBIGUOUS_SCALAR"  # a plain scalar that libraries read differently
    UNKNOWN_KEY = "UNKNOWN_KEY"
    MISSING_KEY = "MISSING_KEY"
    WRONG_TYPE = "WRONG_TYPE"
    WRONG_VALUE = "WRONG_VALUE"  # right type, not allowed here
    RULE = "RULE"  # two fields contradict each other
    UNKNOWN_PLACEHOLDER = "UNKNOWN_PLACEHOLDER"
    BAD_PATH = "BAD_PATH"  # a file that is named is absent, leaves the campaign folder, or is pinned by nothing
    BAD_JSON = "BAD_JSON"  # JSON that is not strict: syntax, NaN, duplicate key, trailing text
    # Freezing
    DIRTY_SOURCE = "DIRTY_SOURCE"
    HIDDEN_GIT_STATE = "HIDDEN_GIT_STATE"  # replace refs, grafts, alternates, shallow or partial clone
    BAD_COMMIT = "BAD_COMMIT"  # not a full object id, not a commit, or not there
    INSTALLED_DRIFT = "INSTALLED_DRIFT"  # an installed package differs from its RECORD or its declaration
    HOST_CHECK_FAILED = "HOST_CHECK_FAILED"
    FILE_DRIFT = "FILE_DRIFT"  # a pinned file, model file or interpreter is not what was frozen
    PACKET_EXISTS = "PACKET_EXISTS"
    SPENT_BEFORE = "SPENT_BEFORE"  # the same files were frozen before: name the packet that is followed
    # Review
    REVIEW_MISSING = "REVIEW_MISSING"
    REVIEWER_EXCLUDED = "REVIEWER_EXCLUDED"  # author or committer
    REVIEW_DUPLICATE = "REVIEW_DUPLICATE"  # same key or same person twice
    REVIEW_FOREIGN = "REVIEW_FOREIGN"  # bound to another packet
    REVIEW_EXPIRED = "REVIEW_EXPIRED"
    SIGNATURE_INVALID = "SIGNATURE_INVALID"
    # Preflight and marker
    PREFLIGHT = "PREFLIGHT"
    PORT_TAKEN = "PORT_TAKEN"
    UNSAFE_ROOT = "UNSAFE_ROOT"  # symlink, foreign owner, group- or world-writable, forbidden file system
    DISK_FULL = "DISK_FULL"
    HOST_BUSY = "HOST_BUSY"
    WRONG_CARD = "WRONG_CARD"  # a card is missing, hidden, or another one than was selected
    REHEARSAL_MISSING = "REHEARSAL_MISSING"
    CONSUMED = "CONSUMED"
    CONSUMED_BY_UNKNOWN = "CONSUMED_BY_UNKNOWN"  # something that labctl did not write lies at the marker's path
    LEDGER_BROKEN = "LEDGER_BROKEN"
    MARKER_WRITE = "MARKER_WRITE"
    # Legs
    ALREADY_STARTED = "ALREADY_STARTED"  # LEG_STARTED exists
    WRONG_MACHINE = "WRONG_MACHINE"
    SERVER_EXITED = "SERVER_EXITED"
    READY_TIMEOUT = "READY_TIMEOUT"
    FOREIGN_LISTENER = "FOREIGN_LISTENER"
    STREAM_BROKEN = "STREAM_BROKEN"
    REQUEST_TIMEOUT = "REQUEST_TIMEOUT"
    WORKER_FAILED = "WORKER_FAILED"  # a worker on a card ended with a failure, or was killed
    WORKER_TIMEOUT = "WORKER_TIMEOUT"
    LIFELINE_CUT = "LIFELINE_CUT"
    INTERRUPTED = "INTERRUPTED"
    LOG_LIMIT = "LOG_LIMIT"
    LEFTOVER = "LEFTOVER"
    LEG_CRASHED = "LEG_CRASHED"
    SECRET_FOUND = "SECRET_FOUND"  # a file of the run holds the value of a secret variable
    # Files on disk, manifest and seal
    EXISTS = "EXISTS"
    WRITE_FAILED = "WRITE_FAILED"
    READ_FAILED = "READ_FAILED"
    OPEN_WRITER = "OPEN_WRITER"
    FORBIDDEN_FILE = (
        "FORBIDDEN_FILE"  # symlink, hard link, special file, foreign device, setuid, or a name off the safe set
    )
    EXTRA_FILE = "EXTRA_FILE"
    MISSING_FILE = "MISSING_FILE"
    SIZE_MISMATCH = "SIZE_MISMATCH"
    DIGEST_MISMATCH = "DIGEST_MISMATCH"
    CHANGED_WHILE_READ = "CHANGED_WHILE_READ"
    MANIFEST_FORM = "MANIFEST_FORM"  # any deviation from the one canonical byte form
    UNSEALED = "UNSEALED"
    SEAL_FORM = "SEAL_FORM"
    SEAL_FOREIGN = "SEAL_FOREIGN"  # speaks of another run, packet or marker
    RECORD_FORM = "RECORD_FORM"
    RECORD_CONFLICT = "RECORD_CONFLICT"  # two records of one run contradict each other
    # Naming things on the command line
    NOT_FOUND = "NOT_FOUND"
    AMBIGUOUS = "AMBIGUOUS"
    ANALYZER_FAILED = "ANALYZER_FAILED"
    ANALYZERS_DISAGREE = "ANALYZERS_DISAGREE"
