"""Plans: what the compiler decided, as text, as a picture, and before a run.

In: the plan of a program, or a step that is not compiled yet. Out: `Plan`, a
dictionary that prints itself. `explain` traces and plans a step as a
compilation does, and stops before code is generated.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from typing import Any

from whale import compiler, native
from whale.tracebacks import api_boundary


class Plan(dict[str, Any]):
    """What the compiler decided for a step, with what that is expected to cost.

    A dictionary (``docs/program-format.md`` lists its fields), which compares
    as one; as text it is a summary of at most ten lines.
    """

    def summary(self) -> str:
        """Who does what, whether it fits, how long a step is, what limits it.

        By the cost model: nothing is measured.
        """
        return native.extension().summarize_plan(self._text())

    @api_boundary
    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """One page that needs nothing besides, with pictures of the plan.

        Shares of devices in task graphs, memory against limits, the schedule
        of a step, arguments by placement.

        Args:
            path: a file that the page is written to as well.
        """
        page = native.extension().plan_page(self._text())
        if path is not None:
            with open(path, "w", encoding="utf-8") as file:
                file.write(page)
        return page

    def idle_devices(self) -> list[str]:
        """A text about each group of devices with no work, or little."""
        return native.extension().idle_devices(self._text())

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        devices = sum(len(each["ranks"]) for each in self.get("devices", []))
        names = dict.fromkeys(g["name"] for g in self.get("task_graphs", []))
        return f"<Plan of {', '.join(names) or 'a step'} on {devices} devices>"

    def _repr_html_(self) -> str:
        return self.to_html()

    @api_boundary
    def edited(self, **decisions: Any) -> Plan:
        """A copy with other decisions, for the ``plan`` of `wh.jit`.

        Args:
            **decisions: those of ``plan["decisions"]`` that are replaced, as
                ``cuts=[0, 40]``; None leaves one to the planner.
        """
        kept = {**self["decisions"], **decisions}
        kept = {name: one for name, one in kept.items() if one is not None}
        return Plan({**self, "decisions": copy.deepcopy(kept)})

    def compare(self, other: compiler.PlanLike) -> list[str]:
        """What differs from another plan of the step, a line each: this one's
        decision, and the other's; last the seconds of a step and the bytes of
        the fullest device, as expected."""
        text = compiler.plan_text(other)
        return native.extension().compare_plans(self._text(), text)

    def _text(self) -> str:
        return compiler.plan_text(self)


@api_boundary
def explain(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """Plans a step without compiling or running it: a dry run.

    Args:
        step: what `wh.jit` has made; or a function, which is taken as
            ``wh.jit(step, cluster=cluster)`` takes it.
        *args: its arguments, arrays or `jax.ShapeDtypeStruct`.
        **kwargs: its keyword arguments. ``cluster``, which is none of them, is
            what to plan for in place of the step's own, as in `wh.jit`.

    Raises:
        CompileError: as of a compilation, also where the step does not fit
            into the memory of the devices.
        ValueError: where there is no cluster.
    """
    # They need this module.
    from whale.api import as_step

    cluster = kwargs.pop("cluster", None)
    made = as_step(step, cluster)
    return made.lower(*args, **kwargs).plan(cluster=cluster)
