"""What a rule asks of a call's arguments: a JMESPath expression, read strictly; a mistake is never an allowance.

JMESPath answers most mistakes with null, which counts as false. Here they are errors: comparing the order of anything
but two numbers or two texts, and reaching into a value that is of another kind than the expression takes it for.
What is not there at all is null, as ever: ``path && starts_with(path, '/etc')`` is for a path that may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any, Final, NamedTuple

from jmespath import exceptions, functions, parser, visitor

from events.errors import Refused

__all__ = ("Predicate", "Untellable")

_LONGEST: Final = 2000
_MOST_COPIES: Final = 100
_MOST_VALUES: Final = 10_000
_ORDERING: Final = frozenset({"lt", "lte", "gt", "gte"})


class Untellable(Exception):
    """A predicate could not be evaluated on these arguments; the text says why, without quoting them."""


class Predicate:
    """A compiled expression.

    :raises Refused: if the text is no JMESPath expression, or calls a function that there is not
    """

    def __init__(self, text: str) -> None:
        if not text.strip() or len(text) > _LONGEST:
            raise Refused(f"a predicate is a JMESPath expression of 1 to {_LONGEST} characters; leave it out for none")
        try:
            self._tree = parser.Parser().parse(text).parsed
            faults = [*_faults(self._tree)]
        except (exceptions.JMESPathError, RecursionError) as error:
            raise Refused(f"the predicate {text!r} is no JMESPath expression: {_first_line(error)}") from error
        if not faults:
            growth = _growth(self._tree)
            if growth.copies > _MOST_COPIES or growth.values > _MOST_VALUES:
                faults = [f"it would copy the arguments more than {_MOST_COPIES} times"]
        if faults:
            raise Refused(f"the predicate {text!r} cannot be evaluated: {faults[0]}")
        self.text = text

    def __repr__(self) -> str:
        return f"<Predicate {self.text}>"

    def holds(self, arguments: Any) -> bool:
        """Tell whether it holds of a call's arguments: false, null and anything empty say no.

        :raises Untellable: if it cannot be evaluated on them
        """
        try:
            found = _Strict().visit(self._tree, arguments)
        except Exception as error:
            # Whatever breaks in it: who asked must not take that for an answer.
            raise Untellable(_told(error)) from error
        return found is not None and found is not False and not (isinstance(found, str | list | dict) and not found)


class _Mistyped(Exception):
    """The expression takes a value for what it is not."""


class _Strict(visitor.TreeInterpreter):  # type: ignore[misc]
    """JMESPath's interpreter without its habit of answering null."""

    def visit_field(self, node: Any, value: Any) -> Any:
        return super().visit_field(node, _of_kind(dict, value))

    def visit_index(self, node: Any, value: Any) -> Any:
        return super().visit_index(node, _of_kind(list, value))

    def visit_slice(self, node: Any, value: Any) -> Any:
        return super().visit_slice(node, _of_kind(list, value))

    def visit_projection(self, node: Any, value: Any) -> Any:
        return super().visit_projection(self._based(node, value, list), value)

    def visit_filter_projection(self, node: Any, value: Any) -> Any:
        return super().visit_filter_projection(self._based(node, value, list), value)

    def visit_flatten(self, node: Any, value: Any) -> Any:
        return super().visit_flatten(self._based(node, value, list), value)

    def visit_value_projection(self, node: Any, value: Any) -> Any:
        return super().visit_value_projection(self._based(node, value, dict), value)

    def visit_comparator(self, node: Any, value: Any) -> Any:
        sides = [self.visit(child, value) for child in node["children"]]
        if node["value"] in _ORDERING and not (all(map(_is_number, sides)) or all(isinstance(x, str) for x in sides)):
            raise _Mistyped("only two numbers, or two texts, have an order")
        return super().visit_comparator(node | {"children": [_literal(side) for side in sides]}, value)

    def _based(self, node: Any, value: Any, kind: type) -> Any:
        """Return the node with what it goes through evaluated, once, and found to be of the kind."""
        first, *others = node["children"]
        return node | {"children": [_literal(_of_kind(kind, self.visit(first, value))), *others]}


def _literal(value: Any) -> Any:
    return {"type": "literal", "value": value, "children": []}


def _of_kind(kind: type, value: Any) -> Any:
    if value is not None and not isinstance(value, kind):
        raise _Mistyped(f"a value is not {'an object' if kind is dict else 'an array'}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _faults(node: Any) -> Iterator[str]:
    """Yield what the parser lets pass and no arguments could mend."""
    if node["type"] == "function_expression":
        known = functions.Functions.FUNCTION_TABLE.get(node["value"])
        if known is None:
            yield f"there is no function {node['value']}()"
        else:
            wanted, given = known["signature"], len(node["children"])
            variadic = bool(wanted) and wanted[-1].get("variadic", False)
            if given < len(wanted) or (given > len(wanted) and not variadic):
                yield f"{node['value']}() takes {len(wanted)} arguments, not {given}"
    for child in node["children"]:
        if isinstance(child, dict):
            yield from _faults(child)


class _Growth(NamedTuple):
    """How much an expression makes of a value on its way: at most so many copies of it, so many characters besides."""

    copies: int
    values: int

    def then(self, following: _Growth) -> _Growth:
        """Return the growth of an expression that is evaluated on what this one makes."""
        copies, values = following.copies * self.copies, following.copies * self.values + following.values
        return _Growth(max(copies, self.copies), max(values, self.values))

    def of_each(self, following: _Growth) -> _Growth:
        """Return the growth of an expression that is evaluated on each element of what this one makes."""
        times = max(following.copies + following.values, 1)
        return _Growth(self.copies * times, self.values * times)


def _growth(node: Any) -> _Growth:
    """Return a bound of what an expression makes: ``[@,@]|[@,@]|…`` would double it without end."""
    kind = node["type"]
    grown = [_growth(child) for child in node["children"] if isinstance(child, dict)]
    if kind == "literal":
        return _Growth(0, 1 + len(str(node["value"])))
    if kind in ("subexpression", "pipe", "index_expression"):
        return reduce(_Growth.then, grown)
    if kind in ("projection", "value_projection"):
        return reduce(_Growth.of_each, grown)
    if kind == "filter_projection":
        # What the condition makes is dropped again.
        found, asked = grown[0].of_each(grown[1]), grown[0].of_each(grown[2])
        return _Growth(max(found.copies, asked.copies), max(found.values, asked.values))
    if kind == "function_expression" and node["value"] in ("join", "map"):
        return reduce(_Growth.of_each, reversed(grown))
    if kind in ("multi_select_list", "multi_select_dict", "function_expression"):
        return _Growth(sum(each.copies for each in grown), 1 + sum(each.values for each in grown))
    return _Growth(max([1, *[each.copies for each in grown]]), max([0, *[each.values for each in grown]]))


def _told(error: Exception) -> str:
    if isinstance(error, _Mistyped):
        return str(error)
    # What the library says may quote the arguments.
    return "a function cannot take what it is given" if isinstance(error, exceptions.JMESPathError) else "it broke"


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
