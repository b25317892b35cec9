"""docs/cli.md: every command and every option is there, and no other."""

import re

from conftest import ROOT
from crosswind.cli.reference import command_names, option_names, with_commands

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")

OF_OTHER_COMMANDS = {"--serve", "--call", "--start", "--name", "--access-delay"}
"""Options of crosswind-cell, of a flow in `--beside` and of other programs that pages name."""


def test_the_section_is_what_the_commands_are() -> None:
    assert with_commands(PAGE) == PAGE, "run: make reference"


def test_every_command_and_option_is_named() -> None:
    assert all(re.search(rf"`crosswind {name}[ `]", PAGE) for name in command_names())
    named = set(re.findall(r"--[a-z][a-z0-9-]*", PAGE))
    assert option_names() - {"-h"} <= named


def test_no_option_is_named_that_does_not_exist() -> None:
    for page in ("docs/cli.md", "docs/study.md", "docs/compare.md", "README.md"):
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", (ROOT / page).read_text(encoding="utf-8")))
        assert named <= option_names() | OF_OTHER_COMMANDS | {"--describe"}, page


def test_every_command_that_is_named_exists() -> None:
    named = set(re.findall(r"`crosswind ([a-z]+)[ `]", PAGE))
    assert named == set(command_names())
