import inspect

import pytest

import whale as wh
from whale import config, strategies


def test_sections_and_dots_are_the_same():
    nested = wh.Config({"cluster": {"uneven_replicas": True}})
    assert nested["cluster.uneven_replicas"] is True
    assert dict(nested) == dict(wh.Config({"cluster.uneven_replicas": True}))
    assert nested.nested() == {"cluster": {"uneven_replicas": True}}


def test_a_key_in_both_forms_is_an_error():
    both = {"pipeline": {"strategy": "1f1b"}, "pipeline.strategy": "gpipe"}
    with pytest.raises(ValueError) as error:
        wh.Config(both)
    assert str(error.value) == (
        "Config key 'pipeline.strategy' is given twice, nested and with dots: "
        "'1f1b' and 'gpipe'"
    )


def test_unknown_key_names_the_valid_ones():
    with pytest.raises(ValueError) as error:
        wh.Config({"num_microbatch": 2})
    assert "'num_microbatch'" in str(error.value)
    for key in config.KEYS:
        assert key in str(error.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"cluster": {"uneven": True}},
        {"pipeline.num_stages": 2},
        {"cluster.uneven_replicas.x": 1},
        {1: 2},
    ],
)
def test_unknown_keys_in_sections(settings):
    with pytest.raises(ValueError, match="unknown Config key"):
        wh.Config(settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"num_micro_batch": 0},
        {"num_micro_batch": "8"},
        {"num_micro_batch": True},
        {"num_task_graph": 2.0},
        {"cluster": {"uneven_replicas": 1}},
        {"cluster": True},
    ],
)
def test_bad_values(settings):
    with pytest.raises(ValueError, match="Config"):
        wh.Config(settings)


def test_init_forgets():
    wh.set_default_strategy(wh.replicate(8))
    wh.init(wh.Config({"num_micro_batch": 8}))
    assert strategies.default_strategy() is None
    assert config.current()["num_micro_batch"] == 8
    wh.init({"num_task_graph": 4})
    assert dict(config.current()) == {"num_task_graph": 4}
    wh.init()
    assert not config.current()


def test_default_strategy_takes_strategies():
    with pytest.raises(TypeError, match="wh.replicate"):
        wh.set_default_strategy(8)


@pytest.mark.parametrize("count", [0, -1, 1.5, True, "4"])
def test_device_counts(count):
    with pytest.raises(ValueError, match="replicate: device_count"):
        wh.replicate(count)


def test_names():
    with pytest.raises(ValueError, match="split: name"):
        wh.split(2, name=3)
    scope = wh.split(None, name='a/b:(c)"é')
    (found,) = strategies.scopes_in(f"jit(f)/jvp({scope.component(7)})/add")
    assert found == strategies.Scope("split", None, 7, 'a/b:(c)"é')
    assert str(found) == "wh.split(name='a/b:(c)\"é')"
    assert str(strategies.Scope("replicate", 4, 1, None)) == "wh.replicate(4)"


def test_attributes():
    assert wh.replicate().attribute() == "#whale.replicate"
    assert (
        wh.split(4, name='a"b').attribute()
        == '#whale.split<devices = 4, name = "a\\"b">'
    )
    assert wh.replicate(4) == wh.replicate(4)
    assert wh.replicate(4) != wh.split(4)


def test_help_is_complete():
    text = " ".join(wh.Config.__doc__.split())
    for name, key in config.KEYS.items():
        assert f"``{name}`` ({key.accepts}):" in text
    for name in inspect.signature(wh.jit).parameters:
        assert f"    {name}: " in wh.jit.__doc__
    answers = {n for n in dir(wh.jit(abs, cluster=1)) if not n.startswith("_")}
    # What other parts of Whale ask of a step.
    answers -= {"last_program", "replace_function", "known_program"}
    for name in answers - {"cluster_of_programs", "of_name"}:
        assert f"``{name}" in wh.jit.__doc__
    assert answers > {"lower", "plan", "stats", "profile", "trace"}
