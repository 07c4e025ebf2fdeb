"""Digests of code: what of the project a step would execute, comments and docstrings left out.

A rule carries `code_digest` of its module in its params, so that editing a line reruns exactly the
steps that import it, directly or through other project modules, at the top of a file or inside a
function, absolutely or relatively, and through the `__init__` of every package on the way.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("steps", "kernels")


@cache
def code_digest(module: str, root: Path = ROOT) -> str:
    """Return a 16-digit digest of `module` and of all project modules that it imports."""
    parts = [f"{name}:{_parse(name, root)[0]}" for name in sorted(imported(module, root))]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


@cache
def imported(module: str, root: Path = ROOT) -> frozenset[str]:
    """Return the project modules that running `module` can import, itself and parents included."""
    seen: set[str] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name in seen or _file(name, root) is None:
            continue
        seen.add(name)
        todo += _parse(name, root)[1]
        if "." in name:
            todo.append(name.rpartition(".")[0])
    return frozenset(seen)


def paper_digest(paper: str, root: Path = ROOT) -> dict[str, str]:
    """Return the digests {code, params, lock} that a published table of `paper` depends on."""
    from steps.shared.config import read_yaml
    from steps.shared.runtime import fingerprint, sha256_file

    package = root / "steps" / paper
    code = [
        code_digest(f"steps.{paper}.{file.stem}", root) for file in sorted(package.glob("*.py"))
    ]
    data = [sha256_file(file) for file in sorted(package.glob("*.yaml"))]
    block = read_yaml(root / "params.yaml")["papers"][paper]
    return {
        "code": fingerprint(code + data),
        "params": fingerprint(block),
        "lock": sha256_file(root / "requirements.lock")[:16],
    }


@cache
def _file(module: str, root: Path) -> Path | None:
    if module.split(".")[0] not in PACKAGES:
        return None
    base = root.joinpath(*module.split("."))
    for path in (base / "__init__.py", base.with_suffix(".py")):
        if path.is_file():
            return path
    return None


@cache
def _parse(module: str, root: Path) -> tuple[str, tuple[str, ...]]:
    """Return (digest of the module's syntax tree, names it may import)."""
    path = _file(module, root)
    assert path is not None
    tree = ast.parse(path.read_bytes(), filename=str(path))
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names += [base, *(f"{base}.{alias.name}" for alias in node.names)]
        _drop_docstring(node)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(names)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    base = ".".join(parts[: len(parts) - node.level + 1])
    return f"{base}.{node.module}" if node.module else base


def _drop_docstring(node: ast.AST) -> None:
    if not isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return
    first = node.body[0] if node.body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if is_text and isinstance(first.value.value, str):
        node.body = node.body[1:]
