"""Properties of the frontend's pure parts, over generated inputs."""

import itertools
import json

import jax
import optax
from hypothesis import given
from hypothesis import strategies as st

import whale as wh
from whale import strategies, trees
from whale.matching import only_longest_match


def longest_matches(first, second):
    """All order-preserving matches of equal elements, the longest of them."""
    pairs = [
        (i, j)
        for i, a in enumerate(first)
        for j, b in enumerate(second)
        if a == b
    ]
    found = [
        chosen
        for size in range(min(len(first), len(second)) + 1)
        for chosen in itertools.combinations(pairs, size)
        if all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(chosen))
    ]
    longest = max(map(len, found))
    return [match for match in found if len(match) == longest]


kinds = st.lists(st.integers(0, 3), max_size=4)


@given(kinds, kinds)
def test_the_match_is_the_only_longest_one(first, second):
    expected = longest_matches(first, second)
    got = only_longest_match(first, second)
    assert got == (expected[0] if len(expected) == 1 else ())


@given(
    st.lists(st.integers(0, 30), max_size=60),
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=4),
)
def test_long_lists_that_are_nearly_alike(first, changes):
    """A match of what is unique in both is found, whatever is between."""
    first = [(number, position) for position, number in enumerate(first)]
    second = list(first)
    for place, number in changes:
        second[place:place] = [(number, -1 - place)]
        del second[number : number + 1]
    got = only_longest_match(first, second)
    expected = [
        (i, second.index(x)) for i, x in enumerate(first) if x in second
    ]
    assert got == tuple(expected)


def test_lists_that_are_not_alike_at_all():
    assert only_longest_match([0] * 9000, [0] * 4000) == ()
    ends = [0] * 3000 + [1] * 3000
    assert only_longest_match(ends, ends[::-1]) == ()


@given(
    st.sampled_from([wh.replicate, wh.split]),
    st.none() | st.integers(1, 2**15),
    st.none() | st.text(min_size=1),
    st.integers(1, 10**6),
)
def test_components_are_read_back(kind, count, name, scope):
    if name is not None:
        name = name.encode("utf-8", "replace").decode("utf-8")
    component = kind(count, name).component(scope)
    assert not set(component) & set('/()" ')
    path = f"jit(f)/transpose(jvp({component}))/whale/dot_general"
    assert strategies.scopes_in(path) == [
        strategies.Scope(kind.__name__, count, scope, name)
    ]


nodes = st.recursive(
    st.none() | st.just(0.0),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(st.integers(), inner, max_size=3),
        st.builds(optax.ScaleByAdamState, inner, inner, inner),
        st.just(optax.MaskedNode()),
        st.just(optax.EmptyState()),
    ),
    max_leaves=8,
)


@given(nodes, nodes)
def test_trees_are_read_back(result, argument):
    tree = jax.tree.structure(result)
    arguments = jax.tree.structure(((argument, result), {}))
    encoded = json.loads(json.dumps(trees.encode(tree, arguments)))
    assert trees.decode(encoded, arguments) == tree
