"""How often something may be done: rates, and turns that are waited for."""

__all__ = ()
