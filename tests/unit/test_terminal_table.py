"""Tables on a terminal, as they are read."""

from rich.text import Text

from crosswind.text.terminal_table import TextColumn, number_columns, table_lines

COLUMNS = [TextColumn("run"), TextColumn("study", spare=1), *number_columns("size")]
ROWS = [["a-run", "echo", "1 B"], ["another run", "transfer", "12 kB"]]


def drawn(width: int | None = None) -> list[str]:
    return [line.plain for line in table_lines(COLUMNS, ROWS, width)]


def test_numbers_stand_right_and_nothing_follows_the_last_column() -> None:
    assert drawn() == [
        "run          study      size",
        "a-run        echo        1 B",
        "another run  transfer  12 kB",
    ]
    assert drawn(28) == drawn()


def test_what_can_be_spared_is_left_out_first_and_then_the_widest_column_is_folded() -> None:
    assert drawn(27) == ["run           size", "a-run          1 B", "another run  12 kB"]
    assert drawn(14) == ["run       size", "a-run      1 B", "another  12 kB", "run"]


def test_a_table_that_cannot_fit_has_a_paragraph_for_each_row() -> None:
    columns = [TextColumn("network"), *number_columns("round trip", "loss", "rate"), TextColumn("what")]
    rows = [["4g", "60ms", "1%", "20mbit", "LTE of a phone that moves"], ["lan", "0ms", "", "1gbit", ""]]
    assert [line.plain for line in table_lines(columns, rows, 26)] == [
        "4g",
        "  round trip 60ms",
        "  loss 1%   rate 20mbit",
        "  what LTE of a phone",
        "    that moves",
        "lan",
        "  round trip 0ms",
        "  rate 1gbit",
    ]
    # A number names no row.
    numbers = [line.plain for line in table_lines(number_columns(*"abcde"), [["1" * 20] * 5], 20)]
    assert numbers[:3] == ["  a", "    1111111111111111", "    1111"]


def test_a_table_without_headings_has_none_and_keeps_styles_and_wide_characters() -> None:
    styled = Text("ok", style="green") + Text("\nhint", style="yellow")
    lines = list(table_lines([TextColumn(), TextColumn()], [["北京", styled], ["x", "y"]]))
    assert [line.plain for line in lines] == ["北京  ok", "      hint", "x     y"]
    assert "yellow" in {str(span.style) for span in lines[1].spans}
    assert [line.plain for line in table_lines([TextColumn("a")], [])] == ["a"]


def test_columns_are_folded_between_words_while_any_can_be() -> None:
    columns = [TextColumn("statistic"), *number_columns("change"), TextColumn("verdict")]
    rows = [["mean", "+11.2 [+5, +14] %", "no difference shown"]]
    assert [line.plain for line in table_lines(columns, rows, 34)] == [
        "statistic      change  verdict",
        "mean       +11.2 [+5,  no",
        "               +14] %  difference",
        "                       shown",
    ]
