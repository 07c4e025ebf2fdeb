"""The myeloid network of Krumsiek et al. (2011) as differential equations, for many cells at once.

A Boolean rule becomes a synthesis rate: the sum over all inputs that make it true of a product of
Hill functions (Wittmann et al., 2009), with threshold 0.1 / |coupling| and power 2, as scanpy's
`tl.sim` has it. Shapes: N cells, G genes.
"""

import ast
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from steps.shared.runtime import InputError, reading

POWER = 2
THRESHOLD = 0.1  # over a coupling of 1
START = {"Gata2": 0.8, "Pu.1": 0.8, "Cebpa": 0.8}  # a progenitor
START_NOISE = 0.001


@dataclass(frozen=True)
class Network:
    """Genes in the order of the file; of each its parents and the inputs that switch it on."""

    genes: tuple[str, ...]
    rate: float  # per step: of synthesis and of decay
    parents: tuple[tuple[int, ...], ...]
    on: tuple[tuple[tuple[bool, ...], ...], ...]
    coupling_GG: np.ndarray  # [child, parent]

    def drift(self, state_NG: np.ndarray, clamp_NG: np.ndarray | None = None) -> np.ndarray:
        """Return the change of one step (N, G).

        `clamp_NG`: a rule's value where it is fixed, as 0 for a knockdown and 1 for
        overexpression; NaN where the rule decides.
        """
        drift_NG = np.empty_like(state_NG)
        squares_NG = state_NG**POWER
        for gene, (parents, on) in enumerate(zip(self.parents, self.on, strict=True)):
            active = {
                parent: squares_NG[:, parent]
                / (squares_NG[:, parent] + self._threshold(gene, parent))
                for parent in parents
            }
            made_N = np.zeros(len(state_NG))
            for values in on:
                term_N = np.ones(len(state_NG))
                for parent, value in zip(parents, values, strict=True):
                    term_N *= active[parent] if value else 1 - active[parent]
                made_N += term_N
            drift_NG[:, gene] = made_N
        if clamp_NG is not None:
            drift_NG = np.where(np.isnan(clamp_NG), drift_NG, clamp_NG)
        return self.rate * (drift_NG - state_NG)

    def _threshold(self, gene: int, parent: int) -> float:
        return (THRESHOLD / abs(self.coupling_GG[gene, parent])) ** POWER

    def simulate(
        self,
        state_NG: np.ndarray,
        steps_N: np.ndarray,
        noise: float,
        rng: np.random.Generator,
        clamp_NG: np.ndarray | None = None,
    ) -> np.ndarray:
        """Return the states (N, G) after each cell's own number of steps.

        Every step adds normal noise of standard deviation `noise`.
        """
        state_NG = state_NG.copy()
        for step in range(int(steps_N.max(initial=0))):
            moved_NG = state_NG + self.drift(state_NG, clamp_NG)
            moved_NG += noise * rng.standard_normal(state_NG.shape)
            state_NG = np.where((step < steps_N)[:, None], moved_NG, state_NG)
        return state_NG

    def start(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Return progenitors (count, G)."""
        mean_G = np.array([START.get(gene, 0.0) for gene in self.genes])
        return mean_G + START_NOISE * rng.standard_normal((count, len(self.genes)))


def read_network(path: Path) -> Network:
    """Read a model file: rules `gene = expression`, then couplings `child parent value`."""
    with reading(path, "a model's text"):
        text = path.read_text(encoding="utf-8")
    head, _, tail = text.partition("# coupling list:")
    rate = next((line.split("=")[1] for line in head.splitlines() if "invTimeStep" in line), None)
    rules = dict([part.strip() for part in line.split("=")] for line in _lines(head) if "=" in line)
    if rate is None or not rules:
        raise InputError(f"{path}: no invTimeStep or no rules in it")
    genes = tuple(rules)
    coupling_GG = np.zeros((len(genes), len(genes)))
    for line in _lines(tail):
        child, parent, value = line.split()
        coupling_GG[genes.index(child), genes.index(parent)] = float(value)
    parsed = [_inputs(rule, genes) for rule in rules.values()]
    for gene, (parents, _) in zip(genes, parsed, strict=True):
        if set(np.flatnonzero(coupling_GG[genes.index(gene)])) != set(parents):
            raise InputError(f"{path}: couplings of {gene} are not those of its rule")
    return Network(
        genes,
        float(rate),
        tuple(p for p, _ in parsed),
        tuple(on for _, on in parsed),
        coupling_GG,
    )


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def _inputs(
    rule: str, genes: tuple[str, ...]
) -> tuple[tuple[int, ...], tuple[tuple[bool, ...], ...]]:
    """Return the parents of a rule and their values that make it true."""
    words = rule.replace("(", " ( ").replace(")", " ) ").split()
    parents = tuple(place for place, gene in enumerate(genes) if gene in words)
    # names such as Pu.1 are no identifiers
    names = {gene: f"gene_{place}" for place, gene in enumerate(genes)}
    tree = ast.parse(" ".join(names.get(word, word) for word in words), mode="eval").body
    on = []
    for values in itertools.product((False, True), repeat=len(parents)):
        known = {f"gene_{place}": value for place, value in zip(parents, values, strict=True)}
        if _value(tree, known):
            on.append(values)
    return parents, tuple(on)


def _value(node: ast.AST, known: dict[str, bool]) -> bool:
    """Evaluate a Boolean expression of names, `and`, `or` and `not`."""
    match node:
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _value(operand, known)
        case ast.BoolOp(op=op, values=values):
            found = [_value(value, known) for value in values]
            return all(found) if isinstance(op, ast.And) else any(found)
    raise InputError(f"rule: {ast.unparse(node)!r} is not made of genes, and, or, not")
