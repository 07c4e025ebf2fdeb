"""Digests of code: every import is followed, and only what a step can execute counts."""

import ast
from pathlib import Path

import pytest

from steps.shared.codedigest import code_digest, imported

FILES = {
    "steps/__init__.py": "",
    "steps/p/__init__.py": "SIZE = 1\n",
    "steps/p/top.py": "import steps.p.dotted\nfrom steps.p import sibling\n",
    "steps/p/dotted.py": "A = 1\n",
    "steps/p/sibling.py": "A = 1\n",
    "steps/p/inner.py": "def f():\n    from steps.p.dotted import A\n    return A\n",
    "steps/p/relative.py": "from . import sibling\nfrom .dotted import A\nfrom ..q import deep\n",
    "steps/p/far.py": "from steps.p import top\n",
    "steps/p/cycle.py": "import steps.p.cycle2\n",
    "steps/p/cycle2.py": "import steps.p.cycle\n",
    "steps/p/starred.py": "from kernels.op import *\n",
    "steps/q/__init__.py": "",
    "steps/q/deep.py": "A = 1\n",
    "kernels/__init__.py": "",
    "kernels/op/__init__.py": "from .torch_path import op\n",
    "kernels/op/torch_path.py": "def op():\n    return 1\n",
}


def tree(root: Path, **changes: str) -> Path:
    """Write the files, some with other text: `p__top` stands for steps/p/top.py."""
    for name, text in FILES.items():
        key = name.removesuffix(".py").removeprefix("steps/").replace("/", "__")
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(changes.get(key, text))
    return root


ALWAYS = {"steps", "steps.p"}


@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("dotted", set()),
        ("top", {"steps.p.dotted", "steps.p.sibling"}),
        ("inner", {"steps.p.dotted"}),
        ("relative", {"steps.p.sibling", "steps.p.dotted", "steps.q", "steps.q.deep"}),
        ("far", {"steps.p.top", "steps.p.dotted", "steps.p.sibling"}),
        ("cycle", {"steps.p.cycle2"}),
        ("starred", {"kernels", "kernels.op", "kernels.op.torch_path"}),
    ],
)
def test_every_form_of_import_is_followed(tmp_path, module, others):
    found = imported(f"steps.p.{module}", tree(tmp_path))
    assert found == ALWAYS | {f"steps.p.{module}"} | others


@pytest.mark.parametrize(
    ("key", "text", "changed"),
    [
        ("p__dotted", "A = 2\n", {"dotted", "top", "inner", "relative", "far"}),
        ("q__deep", "A = 2\n", {"relative"}),
        ("kernels__op__torch_path", "def op():\n    return 2\n", {"starred"}),
        ("p____init__", "SIZE = 2\n", {Path(f).stem for f in FILES if f.startswith("steps/p/")}),
        ("p__sibling", "A = 1  # a comment\n", set()),
        ("p__sibling", '"""A docstring."""\n\nA = (\n    1\n)\n', set()),
        ("p__inner", FILES["steps/p/inner.py"].replace("\n", '\n    """Doc."""\n', 1), set()),
        ("p__sibling", 'A = 1\n"""Code."""\n', {"sibling", "top", "relative", "far"}),
    ],
)
def test_an_edit_changes_the_digests_of_what_imports_it(tmp_path, key, text, changed):
    before, after = tree(tmp_path / "before"), tree(tmp_path / "after", **{key: text})
    modules = [Path(name).stem for name in FILES if name.startswith("steps/p/")]
    modules = [module for module in modules if module != "__init__"]
    different = {
        module
        for module in modules
        if code_digest(f"steps.p.{module}", before) != code_digest(f"steps.p.{module}", after)
    }
    assert different == changed - {"__init__"}


def test_a_new_module_that_an_import_can_now_mean_counts(tmp_path):
    before, after = tree(tmp_path / "before"), tree(tmp_path / "after")
    (after / "steps/p/A.py").write_text("B = 1\n")
    for root in (before, after):
        (root / "steps/p/sibling.py").write_text("from steps.p import A\n")
    assert code_digest("steps.p.sibling", before) != code_digest("steps.p.sibling", after)


def test_every_module_is_parsed_once_however_many_rules_import_it(tmp_path, monkeypatch):
    """Else planning would take as long as papers times what they share."""
    root, parse, parsed = tree(tmp_path), ast.parse, []

    def counting(source, filename, **options):
        parsed.append(str(Path(filename).relative_to(root)))
        return parse(source, filename, **options)

    modules = [
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in FILES
    ]
    with monkeypatch.context() as patch:
        patch.setattr(ast, "parse", counting)
        for module in modules * 2:
            code_digest(module, root)
    assert sorted(parsed) == sorted(FILES)


def test_the_place_of_the_project_does_not_matter(tmp_path):
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    assert code_digest("steps.p.far", one) == code_digest("steps.p.far", two)
