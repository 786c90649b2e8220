"""What a step answers of its last program: times, plan, costs and memory."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TextIO

from whale.errors import RuntimeError
from whale.tracebacks import api_boundary

if TYPE_CHECKING:
    from whale.analysis import MemoryAnalysis
    from whale.plan import Plan
    from whale.program import Program


class StepAnswers:
    """The answers of a step about the program that its last call ran."""

    def last_program(self) -> Program | None:
        """What the last call ran."""
        raise NotImplementedError

    def _program(self) -> Program:
        program = self.last_program()
        if program is None:
            raise RuntimeError(
                "the step has not run yet; call it first, or ask "
                "step.lower(...).compile()"
            )
        return program

    def _repr_html_(self) -> str | None:
        """The plan of the last program as a page, for notebooks."""
        program = self.last_program()
        return None if program is None else program._repr_html_()

    @property
    @api_boundary
    def plan(self) -> Plan:
        """`Program.plan` of the last program."""
        return self._program().plan

    @property
    @api_boundary
    def stats(self) -> dict[str, Any] | None:
        """`Program.stats` of the last call."""
        return self._program().stats

    @api_boundary
    def profile(self, file: TextIO | None = None) -> None:
        """`Program.profile` of the last call."""
        self._program().profile(file)

    @api_boundary
    def trace(self, path: str | os.PathLike[str], steps: int = 3) -> None:
        """`Program.trace`: records the next calls of the last program."""
        self._program().trace(path, steps)

    @api_boundary
    def cost_analysis(self) -> dict[str, float]:
        """`Program.cost_analysis` of the last program."""
        return self._program().cost_analysis()

    @api_boundary
    def memory_analysis(self) -> MemoryAnalysis:
        """`Program.memory_analysis` of the last program."""
        return self._program().memory_analysis()
