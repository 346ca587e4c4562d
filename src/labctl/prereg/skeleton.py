"""Writes a new campaign: a commented preregistration, with a host profile and a suite where there are none."""

from pathlib import Path


def write_skeleton(folder: Path) -> list[Path]:
    raise NotImplementedError
