"""``wh.loop``: many steps, with the next batch loaded while one runs."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any, TypeVar

State = TypeVar("State")
Output = TypeVar("Output")
_END = object()


def loop(
    step: Callable[[State, Any], tuple[State, Output]],
    state: State,
    data: Iterable[Any],
) -> Generator[tuple[State, Output], None, None]:
    """Runs a step for each batch of `data`.

    The next batch is taken from `data` by a thread while a step runs, and a
    step starts while the one before may still run: nobody waits here unless the
    caller reads what a step gives.

    Args:
        step: ``state, output = step(state, batch)``, as `wh.jit` makes it.
        state: of the first step; a step that donates it takes it over.
        data: batches. An exception of it is raised where the batch would be
            used.

    Yields:
        the state and the output after each step.
    """
    # One batch waits; another one may be on its way.
    batches: queue.Queue[Any] = queue.Queue(maxsize=1)
    is_over = threading.Event()

    def put(item: Any) -> bool:
        while not is_over.is_set():
            try:
                batches.put(item, timeout=0.1)
                return True
            except queue.Full:
                pass
        return False

    def load() -> None:
        try:
            for batch in data:
                if not put((batch, None)):
                    return
            put((_END, None))
        except BaseException as error:  # raised by the caller's thread
            put((_END, error))

    thread = threading.Thread(target=load, name="whale-batches", daemon=True)
    thread.start()
    try:
        while True:
            batch, error = batches.get()
            if error is not None:
                raise error
            if batch is _END:
                return
            state, output = step(state, batch)
            yield state, output
    finally:
        is_over.set()
