"""What can go wrong: one exception for each kind of error that the program has (docs/exit-codes.md)."""

from __future__ import annotations

from typing import Optional


class Error(Exception):
    """Something could not be done.

    ``kind`` is the word for programs, ``message`` says what and why, ``hint`` what to do about it (or None), and
    ``exit_code`` is what the program would have ended with.
    """

    def __init__(self, kind: str, message: str, hint: Optional[str] = None, exit_code: int = 70) -> None:
        super().__init__(kind, message, hint, exit_code)
        self.kind = kind
        self.message = message
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(Error):
    """An argument can't be understood."""


class NoPermissionError(Error):
    """A right is missing."""


class InputInvalidError(Error):
    """A file that was given is not there, is too large, or can't be understood."""


class OutputExistsError(Error):
    """Files are in the way of what shall be written."""


class DiskFullError(Error):
    """No space is left."""


class UnsupportedError(Error):
    """This system lacks something."""


class SettingUnavailableError(Error):
    """A setting can't be read."""


class ScenarioInvalidError(Error):
    """The scenario, or a setting of a simulation, can't be used."""


class SystemFailureError(Error):
    """Any other error of the operating system."""


KINDS = {
    "usage": UsageError,
    "no_permission": NoPermissionError,
    "input_invalid": InputInvalidError,
    "output_exists": OutputExistsError,
    "disk_full": DiskFullError,
    "unsupported": UnsupportedError,
    "setting_unavailable": SettingUnavailableError,
    "scenario_invalid": ScenarioInvalidError,
    "system": SystemFailureError,
}


def made(kind: str, message: str, hint: Optional[str], exit_code: int) -> Error:
    """The exception for a kind; kinds of what only the program does are plain ``Error``."""
    return KINDS.get(kind, Error)(kind, message, hint, exit_code)
