"""Arithmetic over a document's numbers: a formula as text, made of names, numbers and a few functions.

A number is a float or a list of floats, one for each table row; equally long lists are combined row by row. A formula
comes from a study file, so it can only compute, and cannot take long.
"""

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist, fmean, linear_regression

Number = float | list[float]

MOST_CHARACTERS = 300
MOST_ROWS = 200

_LEVELS = (0.90, 0.95, 0.98, 0.99, 0.999)
_MOST_N = 1000


class FormulaError(ValueError):
    """A formula's error, in one clause."""


@dataclass(frozen=True)
class Function:
    """A function in formulas.

    Attributes: help: its value. apply: on its arguments. by_row: whether it acts on each row by itself. draft: a slow
        function's substitute in a mere check.
    """

    help: str
    apply: Callable[..., Number]
    arguments: int = 1
    by_row: bool = True
    draft: Callable[..., Number] | None = None


def value_of(formula: str, given: Mapping[str, Number], *, draft: bool = False) -> Number:
    """A formula's value.

    Args:   given: its names. Lists have at most MOST_ROWS numbers. draft: only check it, with any number from slow
            functions.
    Raises: FormulaError.
    """
    if len(formula) > MOST_CHARACTERS:
        raise FormulaError(f"the formula has more than {MOST_CHARACTERS} characters")
    try:
        return _value(ast.parse(formula, mode="eval").body, given, draft)
    except (SyntaxError, RecursionError, MemoryError):
        raise FormulaError("it is not a formula") from None
    except (ZeroDivisionError, OverflowError, ValueError, TypeError) as error:
        raise error if isinstance(error, FormulaError) else FormulaError(f"it has no value: {error}") from None


_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}


def _value(node: ast.expr, given: Mapping[str, Number], draft: bool) -> Number:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in given:
            return given[name]
        case ast.Name(id=name):
            raise FormulaError(f"{name} is not among the given numbers")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _by_row(operator.neg, _value(operand, given, draft))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _by_row(_OPERATORS[type(op)], _value(left, given, draft), _value(right, given, draft))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _called(name, [_value(argument, given, draft) for argument in arguments], draft)
    raise FormulaError(f"{ast.unparse(node)!r} is not arithmetic")


def _called(name: str, arguments: Sequence[Number], draft: bool) -> Number:
    function = FUNCTIONS[name]
    apply = function.draft if draft and function.draft is not None else function.apply
    if len(arguments) != function.arguments:
        raise FormulaError(f"{name} takes {function.arguments} numbers, not {len(arguments)}")
    if function.by_row:
        return _by_row(apply, *arguments)
    return apply(*(argument if isinstance(argument, list) else [argument] for argument in arguments))


def _by_row(apply: Callable[..., Number], *arguments: Number) -> Number:
    sizes = {len(argument) for argument in arguments if isinstance(argument, list)}
    if not sizes:
        return apply(*arguments)
    if len(sizes) > 1:
        raise FormulaError(f"it combines {' and '.join(map(str, sorted(sizes)))} rows")
    (size,) = sizes
    rows = zip(*(argument if isinstance(argument, list) else [argument] * size for argument in arguments), strict=True)
    return [float(apply(*row)) for row in rows]  # type: ignore[arg-type]


def _is_in(numbers: Sequence[float], others: Sequence[float]) -> list[float]:
    return [float(any(math.isclose(number, other) for other in others)) for number in numbers]


def _possible(half_widths: Sequence[float], deviations: Sequence[float]) -> list[float]:
    """Of each row 1 where some sample size and level give its half width from its standard deviation, else 0."""
    return [
        float(any(low <= factor <= high for factor in _factors())) for low, high in _ratios(half_widths, deviations)
    ]


def _explained(half_widths: Sequence[float], deviations: Sequence[float]) -> float:
    """The largest share of half widths explained by one sample size and one level."""
    ratios = _ratios(half_widths, deviations)
    return max(sum(low <= factor <= high for low, high in ratios) for factor in _factors()) / len(ratios)


def _draft(half_widths: Sequence[float], deviations: Sequence[float]) -> list[float]:
    return [1.0 for _ in zip(half_widths, deviations, strict=True)]


def _ratios(half_widths: Sequence[float], deviations: Sequence[float]) -> list[tuple[float, float]]:
    """The limits of each half width over its standard deviation, given both printed roundings."""
    return [
        ((width - _rounding(width)) / (sd + _rounding(sd)), (width + _rounding(width)) / (sd - _rounding(sd)))
        for width, sd in zip(half_widths, deviations, strict=True)
    ]


def _rounding(number: float) -> float:
    """Half of a printed number's last digit. A zero at its end is lost, and errs on its side."""
    _, _, decimals = repr(number).partition(".")
    return float(0.5 * 10.0 ** -len(decimals))


@cache
def _factors() -> list[float]:
    """Half width over standard deviation, of every sample size and level: by the normal law, and by Student's t."""
    # Imported here, since it takes a while, and few studies ask for it.
    from scipy.special import stdtrit

    factors = []
    for level in _LEVELS:
        normal = NormalDist().inv_cdf((1 + level) / 2)
        for n in range(2, _MOST_N + 1):
            factors += [normal / math.sqrt(n), float(stdtrit(n - 1, (1 + level) / 2)) / math.sqrt(n)]
    return factors


FUNCTIONS: Mapping[str, Function] = {
    "sqrt": Function("the square root", math.sqrt),
    "log": Function("the natural logarithm", math.log),
    "log10": Function("the logarithm to base 10", math.log10),
    "exp": Function("e to that power", math.exp),
    "abs": Function("without its sign", abs),
    "ceil": Function("the next whole number", lambda number: float(math.ceil(number))),
    "count": Function("the number of rows", lambda rows: float(len(rows)), by_row=False),
    "least": Function("the smallest of all rows", min, by_row=False),
    "most": Function("the largest of all rows", max, by_row=False),
    "mean": Function("the mean of all rows", fmean, by_row=False),
    "slope": Function(
        "the slope of the first over the second, by least squares",
        lambda rows, over: linear_regression(over, rows).slope,
        arguments=2,
        by_row=False,
    ),
    "is_in": Function("1 where a row of the first is among those of the second, else 0", _is_in, 2, by_row=False),
    "possible": Function(
        "of half widths and standard deviations: 1 where a sample size up to 1000 and a level of 90, 95, 98, 99 or "
        "99.9 % give the half width from the deviation, by the normal law or Student's t, else 0",
        _possible,
        arguments=2,
        by_row=False,
        draft=_draft,
    ),
    "explained": Function(
        "likewise, the largest share of rows that one sample size and one level give",
        _explained,
        arguments=2,
        by_row=False,
        draft=lambda half_widths, deviations: fmean(_draft(half_widths, deviations)),
    ),
}
"""Every function by its name."""
