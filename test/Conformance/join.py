"""Joins programs to one: many small ones are compiled and run in the time of
a few."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cases import Tensor, find_functions, signature


def _spell(type_: Tensor) -> str:
    return f"tensor<{''.join(f'{size}x' for size in type_.shape)}{type_.dtype}>"


def join_texts(texts: Sequence[str]) -> str:
    """A program that takes what all the programs take, one after the other, and
    gives what all of them give."""
    functions, calls = "", ""
    arguments: list[str] = []
    results: list[str] = []
    types: list[str] = []
    for number, text in enumerate(texts):
        own = find_functions(text)
        main = next(function for function in own if function.name == "main")
        takes, gives = (
            [_spell(type_) for type_ in part] for part in signature(main)
        )
        text = text[own[0].start : own[-1].end]
        for function in own:
            text = re.sub(
                rf"@{re.escape(function.name)}(?![\w.$-])",
                f"@p{number}_{function.name}",
                text,
            )
        functions += text.replace("func.func public", "func.func private")
        names = [f"%p{number}_{place}" for place in range(len(takes))]
        arguments += [f"{name}: {type_}" for name, type_ in zip(names, takes)]
        results += [f"%r{number}#{place}" for place in range(len(gives))]
        types += gives
        calls += (
            f"\n  %r{number}:{len(gives)} = func.call @p{number}_main"
            f"({', '.join(names)}) : ({', '.join(takes)}) -> "
            f"({', '.join(gives)})"
        )
    return (
        f"module {{\n{functions}\nfunc.func public @main"
        f"({', '.join(arguments)}) -> ({', '.join(types)}) {{{calls}\n"
        f"  return {', '.join(results)} : {', '.join(types)}\n}}\n}}\n"
    )
