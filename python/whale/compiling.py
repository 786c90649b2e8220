"""A program for a text: from the cache, else compiled, with its progress."""

from __future__ import annotations

import sys

from whale import cache, clusters, compiler, progress
from whale.versions import VERSION


def compile(
    text: str,
    cluster: clusters.ClusterLike,
    path: str,
    *,
    target: str,
    name: str,
    plan: compiler.PlanLike | None = None,
    dump_phases_to: str = "",
    explain: str = "",
) -> None:
    """Makes the program directory `path`; what is said goes to standard error.

    Args:
        text: annotated StableHLO.
        cluster: what it is compiled for.
        path: where it goes; does not exist.
        target: as of ``whale-compile``.
        name: of the step, for the progress.
        plan: what is carried out; as of `wh.jit`.
        dump_phases_to: as of `Lowered.compile`; the cache is left out then.
        explain: as of `compiler.compile`; likewise.

    Raises:
        CompileError, WhaleError: as `compiler.compile`.
    """
    is_kept = not dump_phases_to and not explain and cache.directory()
    key = ""
    if is_kept:
        given = "" if plan is None else compiler.plan_text(plan)
        parts = (VERSION, target, clusters.cluster_text(cluster), text, given)
        key = cache.key_of(parts, compiler.PATH)
        said = cache.fetch(key, path)
        if said is not None:
            _say(said)
            return
    with progress.shown(name, clusters.described(cluster)) as on_pass:
        said = compiler.compile(
            text,
            clusters.cluster_argument(cluster),
            path,
            target=target,
            plan=plan,
            dump_phases_to=dump_phases_to,
            explain=explain,
            on_pass=on_pass,
        )
    _say(said)
    if is_kept:
        cache.store(key, path, said)


def _say(said: list[str]) -> None:
    for line in said:
        print(line, file=sys.stderr)
