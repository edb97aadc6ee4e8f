"""What ``wiki`` stands on: pages, their revisions and links, kept for the owner of a row."""

__all__ = ()
