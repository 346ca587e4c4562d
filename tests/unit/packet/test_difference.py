from labctl.packet.difference import describe_difference
from tests.fakes.packets import make_packet


def test_a_packet_does_not_differ_from_itself() -> None:
    packet = make_packet()
    assert describe_difference(packet, make_packet()) == (f"the packets are the same: {packet.id}",)


def test_each_changed_field_is_one_line_in_words() -> None:
    was = make_packet()
    now = make_packet(
        attempt=2,
        follows=was.id,
        tool={"tree_dirhash": "a" * 64},
        engine_sha256="b" * 64,
        preregistration={"treatment": {"candidate": "5"}, "schedule": {"order": ["A1", "B1"]}},
    )
    assert set(describe_difference(was, now)) == {
        "attempt: was 1, now 2",
        f"follows: was absent, now {was.id}",
        "labctl's own files differ",
        "what the engine is said to call things differs",
        "treatment.candidate: was 4, now 5",
        "schedule.order: was A1 B1 B2 A2, now A1 B1",
    }


def test_what_is_only_in_one_packet_is_said_to_be_absent_in_the_other() -> None:
    was = make_packet()
    now = make_packet(preregistration={"gates": [{"kind": "exact_tokens"}], "service": {"environment": {"X": "1"}}})
    assert set(describe_difference(was, now)) == {
        "gates[accounting].kind: was accounting, now absent",
        "service.environment.X: was absent, now 1",
    }


def test_a_changed_input_is_named_by_its_role() -> None:
    was = make_packet()
    document = was.model_dump(mode="json")
    document["files"][0]["sha256"] = "c" * 64
    now = make_packet(files=document["files"])
    role, digest = was.files[0].role, was.files[0].sha256
    assert describe_difference(was, now) == (
        f"files[{role}].sha256: the content differs ({digest[:12]}… was, cccccccccccc… is)",
    )
