"""A claim and its runs in files, judged."""

import yaml

from steps.shared.claims import evaluate_claims, load_claims

BASE = {
    "id": "gain",
    "statement": "b is lower than a",
    "kind": "direction",
    "side": "below",
    "delta": 0.1,
    "unit": "nats",
    "paper_effect": "+2 %",
    "table": "main",
    "measure": {
        "function": "paired_difference",
        "dataset": "d",
        "split": "test",
        "metric": "loss",
        "a": "new",
        "b": "old",
    },
}
FIELDS = ("table", "dataset", "split", "row", "metric", "seed", "x", "value")


def claims(tmp_path, **changes):
    block = {**BASE, **changes}
    if "measure" in changes:
        block["measure"] = {**BASE["measure"], **changes["measure"]}
        block["measure"] = {k: v for k, v in block["measure"].items() if v is not None}
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump([{k: v for k, v in block.items() if v is not None}]))
    return load_claims(path)


def run(row, seed, value, x="", **changes):
    names = {"table": "main", "dataset": "d", "split": "test", "metric": "loss"}
    return {**names, "row": row, "seed": str(seed), "x": x, "value": repr(float(value)), **changes}


def runs(new, old):
    pairs = enumerate(zip(new, old, strict=True))
    return [
        run(row, s, v) for s, pair in pairs for row, v in zip(("new", "old"), pair, strict=True)
    ]


def judge(tmp_path, data, folder=None, root=None, **changes):
    options = {} if root is None else {"root": root}
    (row,) = evaluate_claims(claims(tmp_path, **changes), data, folder=folder, **options)
    return row


# verdicts
# --------
