"""What reading a web page takes: what kind it is, its text, the part that is asked for."""

__all__ = ()
