"""What steps, lowered texts and programs answer, and how they fail.

Under test: profile, stats, plan, trace and analyses of a step's last program;
one compilation for a call and `Lowered.compile`; what objects print; the frames
of tracebacks; the progress of a compilation. Judged by values, by the timeline
that is written, and by texts.
"""

import io
import json
import threading
import traceback

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import trace_rules

import whale as wh
from whale import progress

W, X = jnp.ones((4, 4)), jnp.ones((8, 4))


def step(w, x):
    value, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
    return w - 0.1 * gradient, value


def test_answers_of_a_step(tmp_path, capsys):
    wh.set_default_strategy(wh.replicate())
    ours = wh.jit(step, cluster=2, batch_argnums=1, donate_argnums=0)
    w, _ = ours(W, X)
    assert [g["name"] for g in ours.plan["task_graphs"]] == ["default"] * 3
    assert [rank["rank"] for rank in ours.stats["ranks"]] == [0, 1]
    assert "default" in ours._repr_html_()
    ours.profile()
    assert "test_answers.py" in capsys.readouterr().out
    costs = ours.cost_analysis()
    # Forward, and for the weights: two products of 2 * 8 * 4 * 4.
    assert costs["flops"] > 512 and costs["bytes accessed"] > 0
    memory = ours.memory_analysis()
    # On each rank the weights and half of the batch, and the loss.
    assert memory.argument_size_in_bytes == 64 + 64
    assert memory.output_size_in_bytes == 64 + 4
    assert memory.alias_size_in_bytes == 64
    assert memory.peak_memory_in_bytes == max(memory.peak_memory_by_rank)
    assert memory.generated_code_size_in_bytes > 0
    peaks = [rank["peak_bytes"] for rank in ours.stats["ranks"]]
    assert memory.temp_size_in_bytes <= peaks[0]

    # The next two calls are recorded, the one after is not.
    ours.trace(tmp_path / "trace.json", steps=2)
    for count in (1, 2, 2):
        w, value = ours(w, X)
        events = json.loads((tmp_path / "trace.json").read_text())
        steps = {
            event["args"]["step"]
            for event in events["traceEvents"]
            if "step" in event.get("args", {})
        }
        assert len(steps) == count
    trace_rules.check(events["traceEvents"], arrows=False)
    plain = W
    for _ in range(4):
        plain, expected = step(plain, X)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert ours.stats is not None
    # Those of another signature are of the last call, too.
    ours(w, X[:4])
    assert ours.memory_analysis().argument_size_in_bytes == 64 + 32


def test_errors_of_answers(fake, tmp_path):
    ours = wh.jit(step, cluster=1)
    for ask in ("profile", "trace", "cost_analysis", "memory_analysis"):
        with pytest.raises(wh.RuntimeError, match="the step has not run yet"):
            getattr(ours, ask)(*([tmp_path / "a"] if ask == "trace" else []))
    with pytest.raises(wh.RuntimeError, match="the step has not run yet"):
        ours.plan  # noqa: B018
    ours(W, X)
    with pytest.raises(ValueError, match="steps must be a whole number"):
        ours.trace(tmp_path / "a", steps=0)
    with pytest.raises(FileNotFoundError, match="there is no such folder"):
        ours.trace(tmp_path / "none" / "a")


def test_one_compilation(fake, monkeypatch):
    count = []

    def compile(*args, **options):
        count.append(options)
        return fake.compile(*args, **options)

    monkeypatch.setattr("whale.compiler.compile", compile)
    ours = wh.jit(step, cluster=1)
    program = ours.lower(W, X).compile()
    ours(W, X)
    assert ours.lower(W, X).compile() is program
    assert ours.last_program() is program and len(count) == 1
    other = ours.lower(W, X).compile(explain=True)
    assert other is not program and len(count) == 2
    ours(W, X)
    assert ours.last_program() is program
    # Another default strategy makes another program.
    wh.set_default_strategy(wh.split())
    assert ours.lower(W, X).compile() is not program


def test_what_objects_print(fake):
    ours = wh.jit(step, cluster=1)
    assert repr(ours) == "<wh.jit of 'step' for 1 device: 0 programs>"
    assert ours._repr_html_() is None
    lowered = ours.lower(W, X)
    text = "<whale.Lowered 'step' for 1 device: "
    assert repr(lowered) == text + "not compiled>"
    program = lowered.compile()
    assert repr(lowered) == repr(ours.lower(W, X)) == text + "compiled>"
    assert repr(ours) == "<wh.jit of 'step' for 1 device: 1 program>"
    assert repr(program).endswith("on 1 rank (?): not run>")
    program(W, X)
    assert repr(program).endswith(": its last step has ended>")
    assert "for 12 devices" in repr(
        wh.jit(
            step,
            cluster={
                "nodes": [
                    {"count": 3, "devices": [{"kind": "cpu", "count": 4}]}
                ]
            },
        )
    )


def frames_of(call):
    try:
        call()
    except Exception as error:
        found = traceback.extract_tb(error.__traceback__)
        return [(frame.filename, frame.name) for frame in found]
    raise AssertionError("nothing was raised")


def test_tracebacks_end_with_the_user(fake):
    def fails(x):
        return x + undefined  # noqa: F821

    def wrong_argument():
        wh.jit(step, cluster=1)(W, "text")

    def no_cluster():
        wh.jit(step).lower(W, X).compile()

    def in_the_step():
        wh.jit(fails, cluster=1)(X)

    for call, last in (
        (wrong_argument, "wrong_argument"),
        (no_cluster, "no_cluster"),
        (in_the_step, "fails"),
    ):
        frames = frames_of(call)
        assert {filename for filename, _ in frames} == {__file__}
        assert frames[-1][1] == last


def test_the_compilers_error_is_the_users():
    def in_the_compiler():
        wh.jit(step, cluster={"nodes": []}).lower(W, X).compile()

    frames = frames_of(in_the_compiler)
    assert frames[-1] == (__file__, "in_the_compiler")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_progress(monkeypatch, kind):
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_TERMINAL_SECONDS", 0.01)
    monkeypatch.setattr(progress, "_FILE_SECONDS", 0.02)
    written = threading.Event()

    class File(kind):
        def write(self, text):
            count = super().write(text)
            if "level 3" in text:
                written.set()
            return count

    file = File()
    with progress.shown("step", "4 devices", file) as on_pass:
        on_pass("whale-assign-devices")
        on_pass("whale-propagate")
        assert written.wait(30)
    text = file.getvalue()
    line = "whale: compiling 'step' for 4 devices: level 3 of 6, placing values"
    assert line in text
    if kind is Terminal:
        # The line is gone in the end.
        assert text.endswith("\r\x1b[K") and "\n" not in text
    else:
        assert text.endswith(" s\n") and "\x1b" not in text


def test_short_compilations_have_no_progress():
    file = Terminal()
    with progress.shown("step", "4 devices", file):
        pass
    assert file.getvalue() == ""
