"""What a leg saw mapped, as ranges."""

from labctl.analyze.component.address_space import read_address_space

LINES = ["00001000-00002000 r-xp 00000000 08:01 1 /a", "00002000-00003000 ---p 00000000 00:00 0 ", "junk",
         "00008000-00009000 rw-p 00000000 00:00 0 [heap]"]  # fmt: skip


def test_ranges_that_touch_are_one() -> None:
    space = read_address_space(LINES)
    assert space is not None
    assert space.spans == ((0x1000, 0x3000), (0x8000, 0x9000))
    assert space.holds((0x1800, 0x2800))
    assert not space.holds((0x2800, 0x3001))
    assert not space.holds((0, 0))


def test_no_ranges_are_no_address_space() -> None:
    assert read_address_space(["/usr/lib/libc.so.6\t08:01 12"]) is None
