"""The exceptions that users of Whale may catch."""

import builtins


class WhaleError(Exception):
    """The base of every error that Whale raises on purpose."""


class CompileError(WhaleError):
    """A step that cannot be compiled; the message holds the diagnostics."""


class RuntimeError(WhaleError, builtins.RuntimeError):
    """A program that could not be loaded, or failed while it ran."""


class WhaleWarning(UserWarning):
    """What costs more than it need, or is not followed, and what to write.

    ``wh.init({"warnings": False})`` turns all of them off.
    """
