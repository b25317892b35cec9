"""What losing each packet costs, in sentences."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from crosswind.catalog import catalog
from crosswind.findings.each_loss.result import EachLoss, PacketLoss
from crosswind.report.text.format import count, count_of, exact_number, named_levels, percent, scale_of

WAYS = {"forward": "to the server", "reverse": "to the client"}
SLOPE_AT = 0.001
"""The loss rate in a sentence about the slope."""
_MOST_CAUSES = 3
_MOST_OF_IT = 0.5
_DIGITS = 4


def each_loss_sentence(each: EachLoss) -> str:
    """How many losses cost nothing, and what the others cost, by cause."""
    if not each.count:
        return f"{named_levels(each.levels) or 'This cell'}: no packet is sent, so none can be lost."
    free = sum(loss.cost_ns == 0 for loss in each.losses)
    failed = sum(loss.cost_ns is None for loss in each.losses)
    total = count_of(each.count, "packet")
    which = total if len(each.losses) == each.count else f"{count(len(each.losses))} tried of {total}"
    name = named_levels(each.levels)
    said = [f"{f'{name}: of' if name else 'Of'} {which}, {count(free) if free else 'none'} can be lost at no cost"]
    causes = by_cause(each.losses)
    said += [_cause_text(cause, losses) for cause, losses in causes[:_MOST_CAUSES]]
    if rest := sum(len(losses) for _, losses in causes[_MOST_CAUSES:]):
        said.append(f"other causes add less ({count_of(rest, 'packet')})")
    if failed:
        said.append(f"an exchange fails without one of {count_of(failed, 'packet')}")
    seed = f" These are costs of one seed: {each.of_one_seed}." if each.of_one_seed else ""
    return f"{'; '.join(said)}.{seed}"


def slope_sentence(each: EachLoss) -> str:
    """What 0.1 % loss adds to the mean, mostly by which cause; or the failing share."""
    name = named_levels(each.levels)
    if not each.count:
        return each.sentence
    begun = f"{name}: each" if name else "Each"
    if each.slope_ns is None:
        return f"{begun} 0.1 % of loss makes {slope_text(each).removesuffix(' fail')} of exchanges fail."
    text = f"{begun} 0.1 % of loss adds {slope_text(each)} to the mean of {time_text(each.mean_ns)}"
    most = most_text(each)
    text = f"{text}, {most.replace(' %', ' % of it', 1)}" if most else text
    if each.slope_connect_ns:
        text = f"{text}, and {time_text(SLOPE_AT * each.slope_connect_ns)} to setting up a connection"
    return f"{text}."


def slope_text(each: EachLoss) -> str:
    """What 0.1 % loss adds, as "2.469 ms", or "0.2 % fail"."""
    if each.slope_ns is None:
        return f"{exact_number(float(f'{100 * SLOPE_AT * each.slope_failed:.{_DIGITS}g}'))} % fail"
    return time_text(SLOPE_AT * each.slope_ns) if each.slope_ns else "0"


def most_text(each: EachLoss) -> str:
    """The main cause, as "84.5 % by the SYN timer"; empty without one."""
    by: dict[str | None, float] = {}
    for loss in each.losses:
        by[loss.cause] = by.get(loss.cause, 0.0) + (loss.cost_ns or 0.0) - loss.connect_ns
    total = sum(by.values())
    if total <= 0:
        return ""
    cause = max(by, key=lambda name: by[name])
    # Where others save time, one may add more than all together.
    share = min(by[cause] / total, 1.0)
    return f"{percent(share)} by {cause_noun(cause)}" if share >= _MOST_OF_IT else ""


def by_cause(losses: Sequence[PacketLoss]) -> list[tuple[str | None, list[PacketLoss]]]:
    """Costly losses by cause, the costliest cause first."""
    groups: dict[str | None, list[PacketLoss]] = {}
    for loss in losses:
        if loss.cost_ns:
            groups.setdefault(loss.cause, []).append(loss)
    return sorted(groups.items(), key=lambda group: -sum(loss.cost_ns or 0 for loss in group[1]))


def time_text(time_ns: float) -> str:
    """A time with its unit, to four digits."""
    rounded = float(f"{time_ns:.{_DIGITS}g}")
    divisor, unit = scale_of([rounded], "ns")
    return f"{exact_number(rounded, divisor)} {unit}"


def cause_noun(cause: str | None) -> str:
    """A cause in words."""
    return "an unknown cause" if cause is None else catalog().parts[cause].noun


def _cause_text(cause: str | None, losses: Sequence[PacketLoss]) -> str:
    """As "fast recovery adds 50 ms to 66 ms (7 packets)"."""
    costs = sorted(loss.cost_ns or 0 for loss in losses)
    low, high = time_text(costs[0]), time_text(costs[-1])
    amount = high if low == high else f"{low} to {high}"
    return f"{cause_noun(cause)} adds {amount} ({count_of(len(losses), 'packet')})"


def rows_of(losses: Sequence[PacketLoss]) -> Iterator[tuple[list[PacketLoss], str, str]]:
    """Consecutive packets with the same cost and cause, their range counted from 1, and the cost."""
    alike = groupby(losses, key=lambda loss: (loss.direction, loss.cause, loss.failed, cost_text(loss)))
    for (_, _, _, cost), group in alike:
        members = list(group)
        first, last = members[0].index + 1, members[-1].index + 1
        yield members, f"{first}" if first == last else f"{first} to {last}", cost


def cost_text(loss: PacketLoss) -> str:
    """A loss's cost in a table."""
    if loss.cost_ns is None:
        return f"{count_of(loss.failed, 'exchange')} failed" if loss.failed else "no result"
    return time_text(loss.cost_ns) if loss.cost_ns else "0"
