"""Properties of the frontend's pure parts, over generated inputs."""

import itertools
import json

import jax
import optax
from hypothesis import given
from hypothesis import strategies as st

import whale as wh
from whale import scopes, trees
from whale.lowering import _order_preserving_match

matrices = st.integers(0, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.booleans(), min_size=columns, max_size=columns), max_size=4
    ).map(lambda rows: (rows, columns))
)


def matches(fits, rows, columns):
    """All order-preserving matches, the longest of them."""
    pairs = [(r, c) for r in range(rows) for c in range(columns) if fits[r][c]]
    found = [
        chosen
        for size in range(min(rows, columns) + 1)
        for chosen in itertools.combinations(pairs, size)
        if all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(chosen))
    ]
    longest = max(map(len, found))
    return [match for match in found if len(match) == longest]


@given(matrices)
def test_the_match_is_the_only_longest_one(matrix):
    fits, columns = matrix
    expected = matches(fits, len(fits), columns)
    got = _order_preserving_match(
        range(len(fits)), range(columns), lambda r, c: fits[r][c]
    )
    assert got == (expected[0] if len(expected) == 1 else ())


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
    assert scopes.scopes_in(path) == [
        scopes.Scope(kind.__name__, count, scope, name)
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
