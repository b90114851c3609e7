"""The one error that a user can mend: shown as a single line, without a traceback."""

from __future__ import annotations


class UserError(Exception):
    """Bad input. The message is one line that names the key, the value and the mend."""
