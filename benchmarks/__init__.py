"""The log and the engine under load, beside what the machine and the databases can do at all."""

__all__ = ()
