"""One injection for each code that is raised before a packet is spent: bad files, drift, reviews, an unfit host.

An injection takes an empty folder and must end in one `LabctlError`.
"""

import os
import re
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from labctl.campaign.checks import PreflightRequest
from labctl.campaign.preflight import run_preflight
from labctl.campaign.roots import Roots
from labctl.clock import SystemClock
from labctl.codes import Code
from labctl.durable import make_folders, write_once
from labctl.errors import InvalidPreregistration, MissingReview
from labctl.frozen import canonical_json, strict_json
from labctl.host.devices.discovery import discover, reader_of, select
from labctl.host.storage import open_trusted_folder
from labctl.leg.claim import require_place
from labctl.packet.approval import ApprovalRequest, make_approval
from labctl.packet.freeze import FreezeRequest, freeze_packet
from labctl.packet.git_command import find_repository, refuse_hidden_state
from labctl.packet.installed import verify_installed
from labctl.packet.interpreter import ask_interpreter
from labctl.packet.locate import locate_packet
from labctl.packet.machine import packet_folder
from labctl.packet.model import Packet
from labctl.packet.model_files import verify_model
from labctl.packet.review import ReviewedPacket, require_reviews
from labctl.packet.review_count import FiledApproval, Policy, count_approvals
from labctl.packet.source import verify_work_tree
from labctl.prereg.cards import Cards, CardVendor
from labctl.prereg.checking import check_paths
from labctl.prereg.host_profile import Devices
from labctl.prereg.sources import InstalledSource
from labctl.rundir import AuthorizationPaths
from labctl.servers.sockets import prove_port_free
from labctl.signature import Namespace, sign_bytes
from tests.fakes.lab_repository import LabRepository
from tests.fakes.leg import LegPlace
from tests.fakes.packets import make_packet, merged

Injection = Callable[[Path], None]
BAD_FILES = Path(__file__).parents[1] / "fixtures" / "prereg" / "bad"
ADA = ApprovalRequest("Ada <ada@x.org>", None, None, ("read it",))
ADA_FOR_A_DAY = ApprovalRequest("Ada <ada@x.org>", None, 1, ("read it",))
AUTHOR = ApprovalRequest("Lab One <lab@example.org>", None, None, ("read it",))
SECOND_NS = 1_000_000_000


def bad_file(code: Code) -> Injection:
    """The first bad campaign file whose name holds the code."""

    path = next(path for path in sorted(BAD_FILES.rglob("*")) if re.search(rf"__{code}__L", path.name))

    def check(_folder: Path) -> None:
        (report,) = check_paths([path])
        raise InvalidPreregistration(report.problems)

    check.__doc__ = f"`{path.relative_to(BAD_FILES)}`"
    return check


def bad_json(_folder: Path) -> None:
    """One key twice: readers differ on which of the two counts."""
    strict_json(b'{"verdict": "failed", "verdict": "passed"}', "verdict.json")


def dirty_source(folder: Path) -> None:
    """An edit that the index hides."""
    lab = LabRepository.create(folder / "lab")
    lab.git("update-index", "--assume-unchanged", "README.md")
    lab.write("README.md", "B lab.\n")
    verify_work_tree(lab.top, lab.head)


def hidden_git_state(folder: Path) -> None:
    """An object that git shows in place of another."""
    lab = LabRepository.create(folder / "lab")
    lab.git("replace", lab.head, lab.commit("Other"))
    refuse_hidden_state(find_repository(lab.top))


def bad_commit(folder: Path) -> None:
    """A branch's name, which may lead elsewhere tomorrow."""
    lab = LabRepository.create(folder / "lab")
    verify_work_tree(lab.top, "main")


def installed_drift(_folder: Path) -> None:
    """A package in another version than declared."""
    declared = InstalledSource.model_validate({"installed": "httpx", "version": "0.0.1"})
    verify_installed(ask_interpreter(Path(sys.executable)), declared)


def host_check_failed(folder: Path) -> None:
    """A registered check of the host ends with status 1."""
    lab = LabRepository.create(folder / "lab")
    lab.edit_campaign("authorizes:", "host_checks: [{name: never, command: ['false']}]\nauthorizes:")
    lab.commit("A check that fails")
    freeze_packet(FreezeRequest(lab.campaign))


def file_drift(folder: Path) -> None:
    """A model file with other bytes than its manifest says."""
    (folder / "config.json").write_bytes(b"[]")
    verify_model("tiny", folder, b"0" * 64 + b"  config.json\n")


def packet_exists(folder: Path) -> None:
    """Other bytes lie where an unfinished packet is to be completed."""
    lab = LabRepository.create(folder / "lab")
    packet_id = freeze_packet(FreezeRequest(lab.campaign)).id
    paths = AuthorizationPaths(lab.top / ".labctl/authorization").packet(packet_id)
    paths.packet.unlink()
    paths.prereg.chmod(0o600)
    paths.prereg.write_bytes(b"other\n")
    freeze_packet(FreezeRequest(lab.campaign))


def spent_before(folder: Path) -> None:
    """The same files again, without the name of the spent packet."""
    lab = LabRepository.create(folder / "lab")
    authorization = AuthorizationPaths(lab.top / ".labctl/authorization")
    marker = authorization.marker(freeze_packet(FreezeRequest(lab.campaign)).id)
    make_folders(authorization.markers)
    write_once(marker, b"")
    freeze_packet(FreezeRequest(lab.campaign))


def review_missing(folder: Path) -> None:
    """No approval where one is required."""
    lab = LabRepository.create(folder / "lab")
    lab.edit_campaign("reviews: {required: 0, signatures: none}", "reviews: {required: 1, signatures: none}")
    lab.commit("Reviews")
    require_reviews(packet_folder(freeze_packet(FreezeRequest(lab.campaign)), lab.top), SystemClock())


def review_of(said: str, packet: Packet, now_s: int, *requests: ApprovalRequest) -> Injection:
    """Approvals of a packet, counted for the packet that the tests use."""

    def count(_folder: Path) -> None:
        approvals = (make_approval(packet, request, 0).canonical() for request in requests)
        filed = tuple(FiledApproval(f"{number}.json", data, None) for number, data in enumerate(approvals))
        _, problems = count_approvals(filed, Policy(make_packet(), None, now_s * SECOND_NS))
        raise MissingReview(problems)

    count.__doc__ = said
    return count


def signature_invalid(folder: Path) -> None:
    """A file that is no key cannot sign."""
    (folder / "key").write_text("no key\n")
    sign_bytes(b"approval", folder / "key", Namespace.REVIEW)


def preflight(folder: Path) -> None:
    """A start's own folder that another start has used."""
    place = LegPlace.new(folder)
    (place.scratch / "cache/compiled").write_text("from another start")
    require_place(place.order())


def port_taken(_folder: Path) -> None:
    """Somebody listens, and would even share."""
    with socket.create_server(("127.0.0.1", 0), reuse_port=True) as stranger:
        prove_port_free("127.0.0.1", stranger.getsockname()[1])


def unsafe_root(folder: Path) -> None:
    """A folder that everybody can write to."""
    (folder / "root").mkdir()
    (folder / "root").chmod(0o777)
    open_trusted_folder(folder / "root", folder / "root")


def disk_full(folder: Path) -> None:
    """Less room than the host profile demands."""
    _preflight(folder, "  allowed:", "  min_free_mib: 1000000000\n  allowed:")


def host_busy(folder: Path) -> None:
    """Something else runs in the idle window."""
    count = 1 + (os.cpu_count() or 1) // 50
    load = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        _preflight(folder, "{window_s: 0, max_cpu_percent: 100}", "{window_s: 1, max_cpu_percent: 1}")
    finally:
        for process in load:
            process.kill()
            process.wait()


def wrong_card(folder: Path) -> None:
    """A campaign that names a CPU which no machine has."""
    cards = Cards(vendor=CardVendor.CPU, count=1, identities=("cpu:8191",))
    devices = Devices(xpu_smi=str(folder / "xpu-smi"))
    select(discover(reader_of(cards, devices), devices, SystemClock()), cards)


def rehearsal_missing(folder: Path) -> None:
    """Class record, and nothing has been rehearsed."""
    lab = LabRepository.create(folder / "lab")
    remote = folder / "remote"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    lab.git("remote", "add", "origin", str(remote))
    lab.git("push", "--quiet", "origin", "main")
    preflight_of(lab, preregistration={"class": "record"})


def not_found(folder: Path) -> None:
    """A packet that is not there."""
    locate_packet("0" * 64, folder)


def ambiguous(folder: Path) -> None:
    """One prefix, two packets."""
    for digit in "ab":
        (AuthorizationPaths(folder).packets / ("0" * 63 + digit)).mkdir(parents=True)
        (AuthorizationPaths(folder).packet("0" * 63 + digit).packet).write_bytes(b"")
    locate_packet("0" * 12, folder)


def preflight_of(lab: LabRepository, **changes: object) -> None:
    """Freeze the campaign, change the packet's document, and look at this host."""
    run_preflight(preflight_request(lab, **changes))


def preflight_request(lab: LabRepository, **changes: object) -> PreflightRequest:
    """What preflight would look at, with parts of the packet's document replaced."""
    packet = freeze_packet(FreezeRequest(lab.campaign))
    paths = packet_folder(packet, lab.top)
    changed = Packet.from_json(canonical_json(merged(packet.model_dump(mode="json", by_alias=True), changes)), "packet")
    roots = Roots.of_packet(packet, lab.top)
    scratch = roots.scratch / secrets.token_hex(4)
    make_folders(scratch)
    reviewed = ReviewedPacket(changed, packet.id, paths, ())
    return PreflightRequest(reviewed, roots, scratch, SystemClock(), lambda _: None, None)


def _preflight(folder: Path, old: str, new: str) -> None:
    lab = LabRepository.create(folder / "lab")
    lab.edit("campaigns/hosts/any-cpu.yaml", old, new)
    lab.commit("Another host")
    preflight_of(lab)
