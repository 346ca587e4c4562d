"""Which injection raises which code: every code has one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from labctl.codes import Code
from tests.fakes.packets import make_packet
from tests.faults import after_marker as after
from tests.faults import before_marker as before
from tests.faults import on_cards

Injection = Callable[[Path], None]
CAMPAIGN_FILES = (
    Code.NOT_TEXT,
    Code.TOO_LARGE,
    Code.YAML_SYNTAX,
    Code.YAML_FEATURE,
    Code.DUPLICATE_KEY,
    Code.AMBIGUOUS_SCALAR,
    Code.UNKNOWN_KEY,
    Code.MISSING_KEY,
    Code.WRONG_TYPE,
    Code.WRONG_VALUE,
    Code.RULE,
    Code.UNKNOWN_PLACEHOLDER,
    Code.BAD_PATH,
)
INJECTIONS: Mapping[Code, Injection] = MappingProxyType(
    {code: before.bad_file(code) for code in CAMPAIGN_FILES}
    | {
        Code.BAD_JSON: before.bad_json,
        Code.DIRTY_SOURCE: before.dirty_source,
        Code.HIDDEN_GIT_STATE: before.hidden_git_state,
        Code.BAD_COMMIT: before.bad_commit,
        Code.INSTALLED_DRIFT: before.installed_drift,
        Code.HOST_CHECK_FAILED: before.host_check_failed,
        Code.FILE_DRIFT: before.file_drift,
        Code.PACKET_EXISTS: before.packet_exists,
        Code.SPENT_BEFORE: before.spent_before,
        Code.REVIEW_MISSING: before.review_missing,
        Code.REVIEWER_EXCLUDED: before.review_of("The author approves.", make_packet(), 0, before.AUTHOR),
        Code.REVIEW_DUPLICATE: before.review_of("One person approves twice.", make_packet(), 0, before.ADA, before.ADA),
        Code.REVIEW_FOREIGN: before.review_of(
            "An approval of the next attempt.", make_packet(attempt=2, follows="6" * 64), 0, before.ADA
        ),
        Code.REVIEW_EXPIRED: before.review_of(
            "An approval for a day, a day later.", make_packet(), 86_400, before.ADA_FOR_A_DAY
        ),
        Code.SIGNATURE_INVALID: before.signature_invalid,
        Code.PREFLIGHT: before.preflight,
        Code.PORT_TAKEN: before.port_taken,
        Code.UNSAFE_ROOT: before.unsafe_root,
        Code.DISK_FULL: before.disk_full,
        Code.HOST_BUSY: before.host_busy,
        Code.WRONG_CARD: before.wrong_card,
        Code.REHEARSAL_MISSING: before.rehearsal_missing,
        Code.NOT_FOUND: before.not_found,
        Code.AMBIGUOUS: before.ambiguous,
        Code.CONSUMED: after.consumed,
        Code.CONSUMED_BY_UNKNOWN: after.consumed_by_unknown,
        Code.LEDGER_BROKEN: after.ledger_broken,
        Code.MARKER_WRITE: after.marker_write,
        Code.ALREADY_STARTED: after.already_started,
        Code.WRONG_MACHINE: after.wrong_machine,
        Code.SERVER_EXITED: after.server_exited,
        Code.READY_TIMEOUT: after.ready_timeout,
        Code.FOREIGN_LISTENER: after.foreign_listener,
        Code.STREAM_BROKEN: after.stream_broken,
        Code.REQUEST_TIMEOUT: after.request_timeout,
        Code.WORKER_FAILED: on_cards.worker_failed,
        Code.WORKER_TIMEOUT: on_cards.worker_timeout,
        Code.LIFELINE_CUT: after.interrupted_with(Code.LIFELINE_CUT),
        Code.INTERRUPTED: after.interrupted_with(Code.INTERRUPTED),
        Code.LOG_LIMIT: after.interrupted_with(Code.LOG_LIMIT),
        Code.LEFTOVER: after.leftover,
        Code.LEG_CRASHED: after.leg_crashed,
        Code.SECRET_FOUND: after.secret_found,
        Code.EXISTS: after.exists,
        Code.WRITE_FAILED: after.write_failed,
        Code.READ_FAILED: after.read_failed,
        Code.OPEN_WRITER: after.open_writer,
        Code.FORBIDDEN_FILE: after.forbidden_file,
        Code.EXTRA_FILE: after.extra_file,
        Code.MISSING_FILE: after.missing_file,
        Code.SIZE_MISMATCH: after.size_mismatch,
        Code.DIGEST_MISMATCH: after.digest_mismatch,
        Code.CHANGED_WHILE_READ: after.changed_while_read,
        Code.MANIFEST_FORM: after.manifest_form,
        Code.UNSEALED: after.unsealed,
        Code.SEAL_FORM: after.seal_form,
        Code.SEAL_FOREIGN: after.seal_foreign,
        Code.RECORD_FORM: after.record_form,
        Code.RECORD_CONFLICT: after.record_conflict,
        Code.ANALYZER_FAILED: after.analyzer_failed,
        Code.ANALYZERS_DISAGREE: after.analyzers_disagree,
    }
)
