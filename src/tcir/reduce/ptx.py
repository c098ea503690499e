"""Moves on PTX text: they remove statements of functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tcir.interp.ptx.lexer import Token, tokenize


def statements(text: str) -> list[tuple[int, int]]:
    """Half-open range of characters of each statement in the body of a function.

    Statements are instructions with their guard predicates, declarations, and ``.loc`` lines.
    Labels and braces do not count, because the remaining statements may refer to them.
    """
    return list(_in_bodies(tokenize(text)))


def with_statements(text: str, kept: Sequence[int]) -> str:
    """Returns the text in which only the statements `kept` remain; comments and empty lines are
    removed.
    """
    out, at, stay = [], 0, set(kept)
    for number, (start, end) in enumerate(statements(text)):
        if number not in stay:
            out.append(text[at:start])
            at = end
    lines = "".join([*out, text[at:]]).splitlines()
    said = (line for line in lines if line.strip() and not line.lstrip().startswith("//"))
    return "\n".join(said) + "\n"


def without_debug(text: str) -> str:
    """The text without its source-line information, and without labels that are then unused."""
    text = re.sub(r"^\s*\.section\b[^{]*\{[^}]*\}\n?", "", text, flags=re.M)
    text = re.sub(r"^\s*\.(?:file|loc)\b.*\n?", "", text, flags=re.M)
    named = re.findall(r"[\w$]+", re.sub(r"^\s*[\w$]+:", "", text, flags=re.M))
    known = set(named)
    return re.sub(r"^\s*([\w$]+):\s*\n", lambda m: m[0] if m[1] in known else "", text, flags=re.M)


def _in_bodies(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    depth = at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "=" and not depth:  # the braces of initial values
            at = _behind(tokens, at, ";")
        elif token.text == ".section":
            at = _behind(tokens, at, "}")
        elif token.text in ("{", "}"):
            depth += 1 if token.text == "{" else -1
            at += 1
        elif not depth or token.kind == "end" or tokens[at + 1].text == ":":
            at += 1 if not depth or token.kind == "end" else 2
        elif token.text == ".loc":
            end = next(n for n in range(at, len(tokens)) if _ends_line(tokens, at, n))
            yield token.offset, _end(tokens[end - 1])
            at = end
        else:
            at = _behind(tokens, at, ";")
            yield token.offset, _end(tokens[at - 1])


def _behind(tokens: Sequence[Token], at: int, text: str) -> int:
    """The number of the token after the next `text`; the last one if there is none."""
    found = (n + 1 for n in range(at, len(tokens)) if tokens[n].text == text)
    return next(found, len(tokens))


def _ends_line(tokens: Sequence[Token], at: int, number: int) -> bool:
    return tokens[number].line != tokens[at].line or tokens[number].kind == "end"


def _end(token: Token) -> int:
    return token.offset + len(token.text)
