"""What can go wrong in the lab: what the user asked for, never our own mistakes."""


class LabError(Exception):
    """A configuration, a file or a missing package; the message says which."""
