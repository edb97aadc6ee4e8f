"""HTTP calls as actions: what a configured operation says, the exact request it makes, and what comes back."""

__all__ = ()
