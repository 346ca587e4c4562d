"""New campaigns."""

from pathlib import Path

import pytest

from labctl.codes import Code
from labctl.errors import InvalidPreregistration, Refused
from labctl.prereg.campaign_files import load_campaign
from labctl.prereg.card_files import load_any_campaign
from labctl.prereg.card_skeleton import CardKind, write_card_skeleton
from labctl.prereg.skeleton import write_skeleton

CHAT = 'labctl: 1\nkind: suite\nid: talk\nprompts:\n  - {id: c1, messages: [{role: user, content: "Hi"}]}\n'


def test_a_new_campaign_validates_with_what_was_written_beside_it(tmp_path: Path) -> None:
    written = write_skeleton(tmp_path / "campaigns" / "my-idea")
    assert [path.relative_to(tmp_path / "campaigns").as_posix() for path in written] == [
        "hosts/this-machine.yaml",
        "suites/first-prompts.yaml",
        "my-idea/campaign.yaml",
    ]
    assert load_campaign(written[-1]).preregistration.model.id == "my-idea"


def test_a_host_profile_and_a_suite_that_are_there_are_used(tmp_path: Path) -> None:
    write_skeleton(tmp_path / "one")
    (tmp_path / "suites" / "a-chat.yaml").write_text(CHAT)
    (written,) = write_skeleton(tmp_path / "two")
    said = load_campaign(written).preregistration.model
    assert (said.workload.suite, said.workload.api) == ("suites/a-chat.yaml", "chat")


def test_without_an_embedded_interpreter_the_first_is_named(tmp_path: Path) -> None:
    write_skeleton(tmp_path / "one")
    host = tmp_path / "hosts" / "this-machine.yaml"
    host.write_text(host.read_text().replace("embedded: self", "serving: /opt/x"))
    (written,) = write_skeleton(tmp_path / "two")
    assert load_campaign(written).preregistration.model.interpreter == "serving"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (written,) = write_skeleton(tmp_path / "one")[-1:]
    written.write_text("mine")
    with pytest.raises(Refused) as caught:
        write_skeleton(tmp_path / "one")
    assert caught.value.codes == (Code.EXISTS,)
    assert written.read_text() == "mine"


def test_a_name_that_is_no_campaign_id_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        write_skeleton(tmp_path / "My Idea")
    assert caught.value.codes == (Code.WRONG_VALUE,)
    assert list(tmp_path.iterdir()) == []


def test_no_folders_are_made_up_to_the_root(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        write_skeleton(tmp_path / "nonexistent" / "x" / "y")
    assert caught.value.codes == (Code.NOT_FOUND,)
    assert f"expected the folder {tmp_path / 'nonexistent'}, got none" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_host_profile_is_reported_and_no_campaign_written(tmp_path: Path) -> None:
    (tmp_path / "hosts").mkdir()
    (tmp_path / "hosts" / "bad.yaml").write_text("kind: host\n")
    with pytest.raises(InvalidPreregistration):
        write_skeleton(tmp_path / "one")
    assert not (tmp_path / "one").exists()


@pytest.mark.parametrize("kind", CardKind)
def test_a_new_campaign_on_cards_validates_and_uses_the_host_that_is_there(tmp_path: Path, kind: CardKind) -> None:
    write_skeleton(tmp_path / "one")
    written = write_card_skeleton(tmp_path / "two", kind)
    assert [path.name for path in written] == ["campaign.yaml", "worker.py"][: len(written)]
    campaign = load_any_campaign(tmp_path / "two" / "campaign.yaml")
    assert (campaign.preregistration.model.kind, campaign.preregistration.model.id) == (kind, "two")
    with pytest.raises(Refused):
        write_card_skeleton(tmp_path / "two", kind)


def test_a_new_campaign_on_cards_brings_a_host_profile_where_there_is_none(tmp_path: Path) -> None:
    host, campaign, worker = write_card_skeleton(tmp_path / "two", CardKind.COMPONENT)
    assert (host.name, campaign.name, worker.name) == ("this-machine.yaml", "campaign.yaml", "worker.py")
