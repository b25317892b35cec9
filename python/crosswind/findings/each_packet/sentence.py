"""What each packet costs, lost or held back, in sentences."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from crosswind.catalog import catalog
from crosswind.findings.each_packet.result import EachPacket, PacketCost
from crosswind.report.text.format import NOTHING, count, count_of, exact_number, named_levels, percent, scale_of

WAYS = {"forward": "to the server", "reverse": "to the client"}
SLOPE_AT = 0.001
"""The loss rate in a sentence about the slope."""
_MOST_CAUSES = 3
_MOST_RANGES = 4
_MOST_OF_IT = 0.5
_DIGITS = 4


def each_packet_sentence(each: EachPacket) -> str:
    """How many packets cost nothing, and what the others cost: by cause where they are lost, else by how much."""
    name = named_levels(each.levels)
    if not each.count:
        return f"{name or 'This cell'}: no packet is sent, so none can be {'lost' if each.hold_ns is None else 'held'}."
    if each.untried:
        return _unfinished_text(each)
    total, tried = count_of(each.count, "packet"), len(each.costs)
    which = total if tried == each.count else f"{total}, {count(tried)} {'was' if tried == 1 else 'were'} tried:"
    begun = f"{f'{name}: of' if name else 'Of'} {which}"
    seed = f" These are costs of one seed: {each.of_one_seed}." if each.of_one_seed else ""
    said = _lost_text(each) if each.hold_ns is None else _held_text(each, each.hold_ns)
    return f"{begun}{'' if which.endswith(':') else ','} {'; '.join(said)}.{seed}"


def _unfinished_text(each: EachPacket) -> str:
    """How many packets were tried so far, and why no others."""
    name, tried = named_levels(each.levels), len(each.costs)
    chosen, word = count(tried + each.untried), "lost" if each.hold_ns is None else "held back"
    why = f"the others have no result: {each.failure}" if each.failure else "`crosswind run --resume RUN` runs the rest"
    begun = f"{count(tried)} of {chosen} packets {'was' if tried == 1 else 'were'} {word} in turn"
    return f"{f'{name}: {begun}' if name else begun}, so no sum is known; {why}."


def _lost_text(each: EachPacket) -> list[str]:
    """The causes, the costliest packet's first, then the packets without a cost."""
    free = sum(cost.cost_ns == 0 for cost in each.costs)
    failed = sum(cost.cost_ns is None for cost in each.costs)
    causes = by_cause(each.costs)
    said = [f"an exchange fails without one of {count_of(failed, 'packet')}"] if failed else []
    said += [_cause_text(cause, losses) for cause, losses in causes[:_MOST_CAUSES]]
    if rest := sum(len(losses) for _, losses in causes[_MOST_CAUSES:]):
        said.append(f"other causes add less ({count_of(rest, 'packet')})")
    return [*said, f"{count(free) if free else 'none'} can be lost at no cost"]


def _held_text(each: EachPacket, hold_ns: int) -> list[str]:
    """The critical path by packet numbers, and the others by how much they delay the exchanges."""
    by_effect = {effect: [cost for cost in each.costs if effect_of(cost, hold_ns) == effect] for effect in HELD}
    critical = by_effect["as long"]
    where = f": {_places_text(critical)}" if critical else ""
    said = [f"{count(len(critical)) if critical else 'none'} on the critical path{where}"]
    most = max((cost.cost_ns or 0.0 for cost in each.costs), default=0.0)
    for effect, text in _EFFECTS.items():
        if costs := by_effect[effect]:
            said.append(f"{count(len(costs))} {text}{f', by up to {time_text(most)}' if effect == 'longer' else ''}")
    return said


_EFFECTS = {
    "longer": "delay the end longer than they are held", "less": "delay it less", "not": "have slack",
    "earlier": "bring it forward", "fails": "make an exchange fail",
}  # fmt: skip


def _places_text(costs: Sequence[PacketCost]) -> str:
    """Packets by number: "to the server 0 to 2, 11; to the client 0"."""
    said = []
    for direction, group in groupby(costs, key=lambda cost: cost.direction):
        indexes = [cost.index for cost in group]
        runs = [
            [index for _, index in run] for _, run in groupby(enumerate(indexes), key=lambda pair: pair[1] - pair[0])
        ]
        ranges = [f"{run[0]} to {run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs]
        shown = ranges if len(ranges) <= _MOST_RANGES else [*ranges[:_MOST_RANGES], "…"]
        said.append(f"{WAYS[direction]} {', '.join(shown)}")
    return "; ".join(said)


HELD = ("as long", *_EFFECTS)
"""How a packet held back may delay the exchanges."""
_SAME = 0.01
"""Relative to the hold."""


def effect_of(cost: PacketCost, hold_ns: int) -> str:
    """One of `HELD`."""
    if cost.cost_ns is None:
        return "fails"
    if not cost.cost_ns:
        return "not"
    if cost.cost_ns < 0:
        return "earlier"
    if abs(cost.cost_ns - hold_ns) <= _SAME * hold_ns:
        return "as long"
    return "longer" if cost.cost_ns > hold_ns else "less"


def slope_sentence(each: EachPacket) -> str:
    """The mean's increase by 0.1 % loss, with its main cause; or the failing share."""
    name = named_levels(each.levels)
    if not each.count or each.untried or each.hold_ns is not None:
        return each.sentence
    begun = f"{name}: each" if name else "Each"
    if each.slope_ns is None:
        return f"{begun} 0.1 % of loss makes {slope_text(each).removesuffix(' fail')} of exchanges fail."
    text = f"{begun} 0.1 % of loss adds {slope_text(each)} to the mean of {time_text(each.mean_ns)}"
    most = most_text(each)
    text = f"{text}, {most.replace(' %', ' % of it', 1)}" if most else text
    if len(each.costs) < each.count:
        text = f"{text}, estimated from {count(len(each.costs))} of {count_of(each.count, 'packet')}"
    if each.slope_connect_ns:
        text = f"{text}, and {time_text(SLOPE_AT * each.slope_connect_ns)} to setting up the connection"
    return f"{text}."


def slope_text(each: EachPacket) -> str:
    """What 0.1 % loss adds, as "2.469 ms", or "0.2 % fail"."""
    if each.untried:
        return NOTHING
    if each.slope_ns is None:
        return f"{exact_number(float(f'{100 * SLOPE_AT * (each.slope_failed or 0.0):.{_DIGITS}g}'))} % fail"
    return time_text(SLOPE_AT * each.slope_ns) if each.slope_ns else "0"


def most_text(each: EachPacket) -> str:
    """The main cause, as "84.5 % by the SYN timer"; empty without one."""
    by: dict[str | None, float] = {}
    for loss in each.costs:
        by[loss.cause] = by.get(loss.cause, 0.0) + (loss.cost_ns or 0.0) - loss.connect_ns
    total = sum(by.values())
    if total <= 0:
        return ""
    cause = max(by, key=lambda name: by[name])
    # Where others save time, one may add more than all together.
    share = min(by[cause] / total, 1.0)
    return f"{percent(share)} by {cause_noun(cause)}" if share >= _MOST_OF_IT else ""


def by_cause(losses: Sequence[PacketCost]) -> list[tuple[str | None, list[PacketCost]]]:
    """Costly losses by cause, the costliest packet's first."""
    groups: dict[str | None, list[PacketCost]] = {}
    for loss in losses:
        if loss.cost_ns:
            groups.setdefault(loss.cause, []).append(loss)
    return sorted(groups.items(), key=lambda group: -max(loss.cost_ns or 0 for loss in group[1]))


def time_text(time_ns: float) -> str:
    """A time with its unit, to four digits."""
    rounded = float(f"{time_ns:.{_DIGITS}g}")
    divisor, unit = scale_of([rounded], "ns")
    return f"{exact_number(rounded, divisor)} {unit}"


def cause_noun(cause: str | None) -> str:
    """A cause in words."""
    return "an unknown cause" if cause is None else catalog().parts[cause].noun


def packets_caption(each: EachPacket) -> str:
    """The caption of a cell's packet chart."""
    return named_levels(each.levels) or ("each packet lost" if each.hold_ns is None else "each packet held back")


def timeline_title(cost: PacketCost) -> str:
    """The heading of the exchange that a packet delays most."""
    return f"Timeline of {cost.key}: packet {cost.index} {WAYS[cost.direction]}, {cost_text(cost)}"


def _cause_text(cause: str | None, losses: Sequence[PacketCost]) -> str:
    """As "fast recovery adds 50 ms to 66 ms (7 packets)", "the SYN timer adds 1.056 s (SYN, SYN-ACK)"."""
    costs = sorted(loss.cost_ns or 0 for loss in losses)
    low, high = time_text(costs[0]), time_text(costs[-1])
    amount = high if low == high else f"{low} to {high}"
    carried = dict.fromkeys(loss.carries or "" for loss in losses)
    is_opening = set(carried) <= {"SYN", "SYN-ACK"}
    which = ", ".join(carried) if is_opening else count_of(len(losses), "packet")
    return f"{cause_noun(cause)} adds {amount} ({which})"


def rows_of(losses: Sequence[PacketCost]) -> Iterator[tuple[list[PacketCost], str, str]]:
    """Consecutive packets that carry, cost and suffer the same, their range counted from 0, and the cost."""
    alike = groupby(losses, key=lambda loss: (loss.direction, loss.carries, loss.cause, loss.failed, cost_text(loss)))
    for (*_, cost), group in alike:
        members = list(group)
        first, last = members[0].index, members[-1].index
        yield members, f"{first}" if first == last else f"{first} to {last}", cost


def cost_text(loss: PacketCost) -> str:
    """A loss's cost in a table."""
    if loss.cost_ns is None:
        return f"{count_of(loss.failed, 'exchange')} failed" if loss.failed else "no result"
    return time_text(loss.cost_ns) if loss.cost_ns else "0"


def curve_sentence(each: EachPacket) -> list[str]:
    """Up to which loss rate the numbers hold; nothing without a curve."""
    curve = each.curve
    if curve is None or not curve.points:
        return []
    name = named_levels(each.levels)
    tried = f", from {count(curve.pairs)} of {count(curve.all_pairs)} pairs of packets" if curve.pairs else ""
    if curve.pairs and curve.pairs == curve.all_pairs:
        tried = f", from all {count(curve.pairs)} pairs of packets"
    said = f"up to {percent(curve.line_to)} of loss one number tells what it adds, within a tenth"
    if curve.points[-1].rate > curve.line_to:
        said += f"; with two losses at once{tried}, the mean is known up to {percent(curve.points[-1].rate)}"
    return [f"{f'{name}: {said}' if name else said[0].upper() + said[1:]}."]
