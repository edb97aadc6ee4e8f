"""Secrets of a call as the journal keeps them: stored credentials as references, ``writeOnly`` arguments sealed.

A reference, ``«secret row/name#form mark»``, is put back where the call runs. Its mark is made for this very call, so
what a model or a person writes in that form stands for nothing; written by a model, the opening words are themselves
replaced (``«secret text mark»``), so that each journalled text means one thing. Sealed values are bound to their call
likewise. In results, errors and spans a reference has no mark, for nothing is ever put back there.
"""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote, unquote

from msgspec.structs import replace

from engine.credentials import CredentialsError, Vault
from engine.results import Finished, finish
from engine.secret_forms import SecretForm, SecretForms
from engine.settings import Limits
from engine.texts_within import with_texts
from engine.write_only import with_write_only
from events.keys import canonical_bytes
from events.masking import MASK, SEALED_VALUE, is_sealed
from events.types import Proposed

__all__ = ("Concealing", "arguments_to_run", "holds_secrets")

_OPENING: Final = "«secret "
_REFERENCE: Final = re.compile(
    r"«secret (?:(?P<row>[^\s/#»]+)/(?P<name>[^\s/#»]+)(?:#(?P<form>[a-z0-9-]+))?|text) (?P<mark>[0-9a-f]{24})»"
)
_SAFE: Final = "._-"
_NONE: Final = SecretForms({})


class Concealing:
    """How the secrets of one row are kept in the calls of one action.

    :ivar problem: why the row's credentials could not be opened; None: they were, or there are none
    """

    def __init__(
        self,
        row_id: str,
        vault: Vault,
        forms: SecretForms,
        parameters: dict[str, Any] | None,
        problem: str | None = None,
    ) -> None:
        self._row = quote(row_id, _SAFE)
        self._vault = vault
        self._forms = forms
        self._schema = parameters
        self._values = _NONE
        self.problem = problem

    def __repr__(self) -> str:
        return f"<Concealing of row {self._row}: {self._forms!r}{'' if self._schema is None else ', sealed arguments'}>"

    def proposed(self, proposed: Proposed) -> Proposed:
        """Return a proposal with its arguments as the journal keeps them; the same call is the same each time.

        :raises JournalError: if something must be sealed and cannot be
        """
        raw = proposed.raw
        if raw is not None:
            # What could not be read, or was read with allowances, may hold anything anywhere.
            raw = self._conceal(raw, proposed) if self._schema is None else self._seal(raw, proposed)
        return replace(proposed, arguments=self.arguments(proposed.arguments, proposed), raw=raw)

    def without_values(self, proposed: Proposed) -> Proposed:
        """Return a proposal that cannot be kept as it is, without what would have had to be sealed."""
        if self._schema is None:
            return proposed
        raw = None if proposed.raw is None else MASK
        return replace(proposed, arguments=with_write_only(self._schema, proposed.arguments, lambda _: MASK), raw=raw)

    def arguments(self, arguments: Any, call: Proposed) -> Any:
        """Return arguments of this call as the journal keeps them; ``arguments`` stays as it is.

        :raises JournalError: if something must be sealed and cannot be
        """
        own = set[str]()

        def sealed(value: Any) -> str:
            text = self._seal(value, call)
            own.add(text)
            return text

        if self._schema is not None:
            arguments = with_write_only(self._schema, arguments, sealed)
        return self._kept(arguments, call, own, _NONE)

    def content(self, content: Any, call: Proposed) -> Any:
        """Return other JSON content of this call as the journal keeps it, for :meth:`revealed` to put back."""
        return self._kept(content, call, set(), self._values)

    def _kept(self, content: Any, call: Proposed, own: set[str], values: SecretForms) -> Any:
        def kept(text: str) -> str:
            if text.startswith(SEALED_VALUE) and is_sealed(text):
                return text if text in own else self._seal(text, call)
            return self._seal(text, call) if values.stand_in(text) else self._conceal(text, call)

        return with_texts(content, kept, lambda key: self._conceal(key, call))

    def revealed(self, content: Any, call: Proposed) -> Any:
        """Return what is kept of this call as it runs.

        :raises CredentialsError: if a secret is not there any more, or was never this call's
        """
        return with_texts(content, lambda text: self._opened(text, call), lambda key: self._reveal(key, call, True))

    def edited(self, arguments: Any, shown: Any, call: Proposed) -> Any:
        """Return arguments as a person wants them to run: what they were shown masked, and left so, is as it was.

        :param shown: the journalled arguments that they were shown
        :raises CredentialsError: if a secret is not there any more
        """
        whole = _unmasked(arguments, shown)

        def opened(text: str) -> Any:
            return (
                self._opened(text, call) if is_sealed(text) and _holds(shown, text) else self._reveal(text, call, False)
            )

        return with_texts(whole, opened, lambda key: self._reveal(key, call, False))

    def is_same(self, arguments: Any, others: Any, call: Proposed) -> bool:
        """Tell whether two journalled forms of this call's arguments, under whichever keys, are of the same ones."""
        try:
            return canonical_bytes(self.revealed(arguments, call)) == canonical_bytes(self.revealed(others, call))
        except CredentialsError:
            return False

    def with_values(self, *arguments: dict[str, Any]) -> Concealing:
        """Return how secrets are kept in the rest of a call: what it was given to be sealed is looked for there too.

        :param arguments: as they run, by bucket
        """
        if self._schema is None:
            return self
        values: list[str] = []

        def keep(value: Any) -> Any:
            return with_texts(value, values.append, str, lambda number: values.append(str(number)))

        for bucket in arguments:
            with_write_only(self._schema, bucket, keep)
        more = Concealing(unquote(self._row), self._vault, self._forms, self._schema, self.problem)
        more._values = SecretForms({"sealed": values})
        return more

    def text(self, text: str) -> str:
        """Return a text for people, models and traces, with references in the place of secrets."""
        text = self._forms.replaced(text, lambda found: f"{_OPENING}{self._row}/{quote(found.name, _SAFE)}»")
        return self._values.replaced(text, lambda _: MASK)

    def finished(self, finished: Finished, limits: Limits) -> Finished:
        """Return a result with references in the place of secrets; its status is what it said of itself."""
        if not self._forms.stand_in(finished.text) and not self._values.stand_in(finished.text):
            return finished
        other = finish(with_texts(finished.value, self.text, self.text, self._number), limits)
        return replace(other, status=finished.status)

    def _number(self, number: int) -> Any:
        return MASK if self._values.holds(str(number)) else number

    def _conceal(self, text: str, call: Proposed) -> str:
        before, *rest = text.split(_OPENING)
        pieces = [self._references(before, call)]
        for piece in rest:
            pieces += [f"{_OPENING}text {self._mark(call, '', '')}»", self._references(piece, call)]
        return "".join(pieces)

    def _references(self, text: str, call: Proposed) -> str:
        return self._forms.replaced(text, lambda found: self._reference(found, call))

    def _reference(self, found: SecretForm, call: Proposed) -> str:
        form = found.form and f"#{found.form}"
        mark = self._mark(call, found.name, found.form)
        return f"{_OPENING}{self._row}/{quote(found.name, _SAFE)}{form} {mark}»"

    def _opened(self, text: str, call: Proposed) -> Any:
        if not text.startswith(SEALED_VALUE) or not is_sealed(text):
            return self._reveal(text, call, True)
        return self._vault.open_value(text, owner=call.user_id, row_id=call.tool_id or "", within=_identity(call))

    def _reveal(self, text: str, call: Proposed, strict: bool) -> str:
        if _OPENING not in text:
            return text
        return _REFERENCE.sub(lambda match: self._meant(match, call, strict), text)

    def _meant(self, match: re.Match[str], call: Proposed, strict: bool) -> str:
        name, form = unquote(match["name"] or ""), match["form"] or ""
        own = match["row"] is None or match["row"] == self._row
        if not own or not self._vault.is_mark(match["mark"], *_parts(call), name, form):
            if own and strict:
                raise CredentialsError("this call was not given the secrets that it names; make it again")
            return match.group()
        if match["row"] is None:
            return _OPENING
        found = self._forms.text_of(name, form)
        if found is None:
            raise CredentialsError(f"the credential {name!r} that this call was made with is not there any more")
        return found

    def _seal(self, value: Any, call: Proposed) -> str:
        return self._vault.seal_value(value, owner=call.user_id, row_id=call.tool_id or "", within=_identity(call))

    def _mark(self, call: Proposed, name: str, form: str) -> str:
        return self._vault.mark(*_parts(call), name, form)


def arguments_to_run(hidden: Concealing | None, proposed: Proposed) -> Any:
    """Return a call's journalled arguments as they run.

    :raises CredentialsError: if a secret is not there any more
    """
    return proposed.arguments if hidden is None else hidden.revealed(proposed.arguments, proposed)


def holds_secrets(content: Any) -> bool:
    """Tell whether JSON content may hold a reference or a sealed value."""
    found: list[str] = []

    def look(text: str) -> str:
        if _OPENING in text or is_sealed(text):
            found.append(text)
        return text

    with_texts(content, look, look)
    return bool(found)


def _parts(call: Proposed) -> tuple[str | None, ...]:
    return call.user_id, call.message_id, call.run_id, call.call_id, call.tool_id, call.action_name


def _identity(call: Proposed) -> str:
    return canonical_bytes(_parts(call)).decode()


def _holds(content: Any, text: str) -> bool:
    found: list[str] = []

    def look(item: str) -> str:
        if item == text:
            found.append(item)
        return item

    with_texts(content, look, str)
    return bool(found)


def _unmasked(edited: Any, shown: Any) -> Any:
    """Return edited arguments with what was sealed in the place of each mask that stands where it stood."""
    if edited == MASK and is_sealed(shown):
        return shown
    if type(edited) is dict and type(shown) is dict:
        return {key: _unmasked(item, shown.get(key)) for key, item in edited.items()}
    if type(edited) is list and type(shown) is list:
        return [_unmasked(item, shown[place]) if place < len(shown) else item for place, item in enumerate(edited)]
    return edited
