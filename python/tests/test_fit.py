"""Options that let a step fit: chosen (``fit``), priced, and reported.

Under test: a perceptron with momentum on devices of little memory. What the
compiler chooses must be as fast, by its model, as the fastest of all
combinations that fit, planned one by one; results must be those of `jax.jit`.
What `wh.fit` says of the step and of each option must be what `wh.explain` says
of a step with it, and the largest mini-batch must fit where a larger one does
not. A failure means that an option is taken that does not suffice or costs more
than another one, or that a report is wrong.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import whale as wh
from whale import compiler

WIDTH, ROWS, LAYERS = 32, 256, 6
LINK = {"bandwidth": 1e10, "latency": 1e-6}


def cluster_of(*memories):
    kinds = {
        f"k{number}": {
            "flops": {"f32": 1e12},
            "memory_bytes": int(memory),
            "memory_bandwidth": 1e11,
        }
        for number, memory in enumerate(memories)
    }
    devices = [{"kind": kind} for kind in kinds]
    return {"kinds": kinds, "nodes": [{"devices": devices, "link": LINK}]}


def step(params, moments, x, norm=lambda y: y):
    def loss(params):
        y = x
        for w, b in params:
            y = norm(y)
            y = y + jnp.tanh(y @ w + b)
        return jnp.mean(y**2)

    value, grads = jax.value_and_grad(loss)(params)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, grads)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, params, moments)
    return params, moments, value


def arguments(rows=ROWS):
    keys = jax.random.split(jax.random.key(0), LAYERS + 1)
    params = [
        (jax.random.normal(k, (WIDTH, WIDTH)) / WIDTH, jnp.zeros(WIDTH))
        for k in keys[:-1]
    ]
    moments = jax.tree.map(jnp.zeros_like, params)
    return params, moments, jax.random.normal(keys[-1], (rows, WIDTH))


def jitted(cluster, config, function=step, plan=None):
    wh.init(wh.Config(config))
    wh.set_default_strategy(wh.replicate())
    return wh.jit(
        function,
        cluster=cluster,
        donate_argnums=(0, 1),
        batch_argnums=2,
        plan=plan,
    )


def planned(cluster, config, rows=ROWS):
    return jitted(cluster, config).lower(*arguments(rows)).plan()


def peak_of(plan):
    return max(device["peak_memory_bytes"] for device in plan["devices"])


@pytest.fixture(scope="module")
def whole():
    """What the step needs without options."""
    return peak_of(planned(cluster_of(1e9, 1e9), {}))


@pytest.mark.parametrize(
    "part", [0.8, pytest.param(0.5, marks=pytest.mark.long)]
)
def test_the_cheapest_that_suffices_is_taken(whole, part):
    cluster = cluster_of(whole * part, whole * part)
    plan = planned(cluster, {"fit": "auto"})
    assert peak_of(plan) <= whole * part
    fastest = np.inf
    for micro, zero, auto in itertools.product(
        (1, 2, 4, 8), (None, "v0", "v2"), (None, "auto")
    ):
        config = {"num_micro_batch": micro}
        config |= {"zero.level": zero} if zero else {}
        config |= {"gradient_checkpoint.type": auto} if auto else {}
        try:
            fastest = min(fastest, planned(cluster, config)["step_time_s"])
        except wh.CompileError:
            continue
    # What would be faster by less than this isn't looked for.
    assert plan["step_time_s"] <= fastest * 1.006
    # With these options it is the same step.
    chosen = plan["decisions"]["options"]
    same = planned(cluster, chosen)
    assert same["step_time_s"] == plan["step_time_s"]
    assert peak_of(same) == peak_of(plan)


def test_chosen_options_compute_the_same(whole):
    cluster = cluster_of(whole * 0.45, whole * 0.45)
    given = arguments()
    compiled = jitted(cluster, {"fit": "auto"})
    params, moments, x = jax.tree.map(jnp.copy, given)
    for mine, theirs in zip(
        jax.tree.leaves(compiled(params, moments, x)),
        jax.tree.leaves(jax.jit(step)(*given)),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    # Given back, the plan brings its options, and nothing is chosen.
    plan = compiled.plan
    again = jitted(cluster, {"fit": "auto"}, plan=plan).lower(*given).plan()
    assert again["decisions"] == plan["decisions"]
    wrong = {**plan["decisions"]["options"], "zero.levels": "v0"}
    with pytest.raises(wh.CompileError, match="there is no key 'zero.levels'"):
        other = jitted(
            cluster, {"fit": "auto"}, plan=plan.edited(options=wrong)
        )
        other.lower(*given).plan()


def test_a_step_that_fits_stays(whole):
    cluster = cluster_of(whole, whole)
    plain, auto = planned(cluster, {}), planned(cluster, {"fit": "auto"})
    assert "options" not in auto["decisions"]
    assert auto["devices"] == plain["devices"]


def test_what_is_given_stays(whole):
    cluster = cluster_of(whole * 0.8, whole * 0.8)
    plan = planned(cluster, {"fit": "auto", "num_micro_batch": 1})
    assert "num_micro_batch" not in plan["decisions"]["options"]
    given = {"num_micro_batch": 1, "gradient_checkpoint.type": "auto"}
    with pytest.raises(wh.CompileError) as error:
        planned(
            cluster_of(whole / 9, whole / 9),
            {"fit": "auto", "zero.level": "v0"} | given,
        )
    assert "fit: there are no options left that would help" in str(error.value)


def test_the_best_is_named_where_nothing_suffices(whole):
    with pytest.raises(wh.CompileError) as error:
        planned(cluster_of(whole / 9, whole / 9), {"fit": "auto"})
    said = str(error.value).splitlines()[0]
    assert "fit: with the best of all options, " in said
    assert "lacks" in said.partition("fit: ")[2]
    assert "gradient_checkpoint.type auto" in said


def test_fit_says_what_explain_says(whole):
    cluster = cluster_of(whole * 0.6, whole * 0.6)
    fit = wh.fit(jitted(cluster, {}), *arguments())
    assert not fit.need.fits
    assert fit.need.peak_memory_bytes == whole
    assert fit.need.memory_bytes == int(whole * 0.6)
    assert sum(held.bytes for held in fit.held) == whole
    assert {held.what for held in fit.held} >= {"arguments: params"}
    seen = set()
    for option in fit.options:
        assert option.error is None
        seen |= option.options.keys()
        assert option.saved_bytes == whole - option.need.peak_memory_bytes
        assert option.rounds == bool(
            {"communication.bf16", "amp.level"} & option.options.keys()
        )
        if option.need.fits:
            plan = planned(cluster, dict(option.options))
            assert peak_of(plan) == option.need.peak_memory_bytes
            assert plan["step_time_s"] == option.need.step_time_s
    assert seen >= {
        "zero.level",
        "num_micro_batch",
        "gradient_checkpoint.type",
        "optimizer.num_apply_group",
        "communication.bucket_bytes",
        "communication.bf16",
        "amp.level",
    }
    auto = planned(cluster, {"fit": "auto"})
    assert fit.best.need.step_time_s == pytest.approx(
        auto["step_time_s"], rel=0.006
    )
    text = str(fit)
    assert "which does not fit" in text and "num_micro_batch 2 " in text
    assert text in fit._repr_html_().replace("&#x27;", "'")


def test_fit_of_a_step_that_fits(whole):
    cluster = cluster_of(whole * 2, whole * 2)
    fit = wh.fit(jitted(cluster, {}), *arguments())
    assert fit.need.fits and fit.best is None
    assert fit.need.peak_memory_bytes == peak_of(fit.plan) == whole
    # Recomputation has a price, too.
    (again,) = [
        option
        for option in fit.options
        if option.options == {"gradient_checkpoint.type": "auto"}
    ]
    assert again.saved_bytes > 0 and again.seconds > 0
    # All together save more than any alone.
    most = max(fit.options, key=lambda option: option.saved_bytes)
    assert len(most.options) == 3


def test_recomputation_that_is_not_enough(whole):
    """What is planned from its end on computes nothing again."""
    recomputed = {"gradient_checkpoint.type": "auto"}
    fit = wh.fit(jitted(cluster_of(whole * 0.3), recomputed), *arguments())
    assert not fit.need.fits
    for option in fit.options:
        assert (option.need is None) == bool(option.error)


@pytest.mark.parametrize(
    "parts, beyond",
    # Unlike devices are shared out by what they are expected to need.
    [((0.7, 0.7), 1.15), ((3, 3), 1.15), ((2, 1), 1.5)],
)
def test_largest_batch(whole, parts, beyond):
    cluster = cluster_of(*(whole * part for part in parts))
    most = wh.fit(jitted(cluster, {}), *arguments()).largest_batch
    assert most.need is not None and most.need.fits
    plan = planned(cluster, {}, most.samples)
    peaks = [device["peak_memory_bytes"] for device in plan["devices"]]
    assert most.need.peak_memory_bytes in peaks
    with pytest.raises(wh.CompileError, match="lacks"):
        planned(cluster, {}, int(most.samples * beyond))


def test_a_model_of_one_size(whole):
    def fixed(params, moments, x):
        return step(params, moments, x.reshape(ROWS, WIDTH))

    cluster = cluster_of(whole * 3, whole * 3)
    most = wh.fit(jitted(cluster, {}, fixed), *arguments()).largest_batch
    assert most.need is None and most.samples > 2 * ROWS
    assert "reshape" in most.error


def test_an_interrupt_ends_the_compiler(whole, monkeypatch):
    """What ends the trace beside it ends the compiler, too."""
    started = []
    start = compiler._start

    def noted(*given):
        started.append(start(*given))
        return started[-1]

    def interrupted(self, samples):
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler, "_start", noted)
    monkeypatch.setattr(wh.Lowered, "with_samples", interrupted)
    compiled = jitted(cluster_of(whole * 3, whole * 3), {})
    with pytest.raises(KeyboardInterrupt):
        wh.fit(compiled, *arguments())
    (process,) = started
    assert process.poll() is not None


def test_options_without_a_plan_say_why():
    """Samples meet between layers: no micro-batches."""

    def normed(params, moments, x):
        def norm(y):
            return (y - y.mean(0)) / jnp.sqrt(y.var(0) + 1e-2)

        return step(params, moments, x, norm)

    fit = wh.fit(jitted(1, {}, normed), *arguments())
    errors = {
        key: option.error
        for option in fit.options
        if option.error
        for key in option.options
    }
    assert "num_micro_batch" in errors
    # No replicas.
    assert "zero.level" not in {key for o in fit.options for key in o.options}
    assert errors["num_micro_batch"] in str(fit)


def test_without_a_batch():
    def double(x):
        return x * 2

    fit = wh.fit(double, jnp.ones(8), cluster=1)
    assert fit.samples is None and fit.largest_batch is None
    assert fit.need.fits
    with pytest.raises(ValueError, match="no cluster"):
        wh.fit(double, jnp.ones(8))
