# N2L (OpenReview Hc71kKCEFG). A row is a data set: its CLIP, the learner over its tasks, the test.

from steps.n2l import plan as n2l_plan
from steps.n2l.config import Prepare as N2lPrepare

N2L = n2l_plan.Files(config)


for row in rows("n2l"):

    rule:
        name:
            f"n2l_prepare_{row}"
        input:
            assets=[file for asset in N2L.assets(row) for file in asset_files(asset)],
        output:
            N2L.prepared(row),
        log:
            f"logs/{{scale}}/n2l/prepare_{row}.log",
        benchmark:
            f"logs/{{scale}}/n2l/prepare_{row}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        resources:
            gpu=one_gpu,
        params:
            row=row,
            config=step_config(
                "n2l", "prepare", model=configuration.part(N2lPrepare, row)
            ),
            code=code(N2L.module(row)),
            step=code("steps.n2l.prepare"),
        message:
            "{rule}: images, or features of frozen towers"
        shell:
            "python -m steps.n2l.prepare --config {params.config:q} --scale {wildcards.scale}"
            " --row {params.row} --assets {input.assets} --threads {threads}"
            " --out results/{wildcards.scale}/n2l/prepare 2> {log}"

    rule:
        name:
            f"n2l_train_{row}"
        input:
            data=N2L.prepared(row),
        output:
            **N2L.trained(row),
        log:
            f"logs/{{scale}}/n2l/train_{row}_seed{{seed}}.log",
        benchmark:
            f"logs/{{scale}}/n2l/train_{row}_seed{{seed}}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            row=row,
            device=device,
            config=step_config("n2l", "train", row=row),
            code=code("steps.n2l.train"),
        message:
            "{rule} seed {wildcards.seed}: a CLIP, and what it makes of images and names"
        shell:
            "python -m steps.n2l.train --config {params.config:q} --scale {wildcards.scale}"
            " --device {params.device}"
            " --row {params.row} --seed {wildcards.seed} --threads {threads}"
            " --data {input.data[0]}"
            " --out results/{wildcards.scale}/n2l/train/{params.row}/seed{wildcards.seed} 2> {log}"

    rule:
        name:
            f"n2l_merge_{row}"
        input:
            learn=N2L.trained(row)["learn"],
        output:
            **N2L.merged(row),
        log:
            f"logs/{{scale}}/n2l/merge_{row}_seed{{seed}}.log",
        benchmark:
            f"logs/{{scale}}/n2l/merge_{row}_seed{{seed}}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            row=row,
            config=N2L.merge_config(row),
            code=code("steps.n2l.merge"),
        message:
            "{rule} seed {wildcards.seed}: labels and weights of every task"
        shell:
            "python -m steps.n2l.merge --config {params.config:q} --scale {wildcards.scale}"
            " --row {params.row} --seed {wildcards.seed} --threads {threads}"
            " --learn {input.learn}"
            " --out results/{wildcards.scale}/n2l/merge/{params.row}/seed{wildcards.seed}"
            " 2> {log}"

    rule:
        name:
            f"n2l_evaluate_{row}"
        input:
            **N2L.merged(row),
            learn=N2L.trained(row)["learn"],
            test=N2L.trained(row)["test"],
        output:
            runs=N2L.runs(row),
        log:
            f"logs/{{scale}}/n2l/evaluate_{row}_seed{{seed}}.log",
        benchmark:
            f"logs/{{scale}}/n2l/evaluate_{row}_seed{{seed}}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            row=row,
            config=N2L.merge_config(row),
            code=code("steps.n2l.evaluate"),
        message:
            "{rule} seed {wildcards.seed}: classifiers, and their accuracy"
        shell:
            "python -m steps.n2l.evaluate --config {params.config:q} --scale {wildcards.scale}"
            " --row {params.row} --seed {wildcards.seed} --threads {threads}"
            " --learn {input.learn} --test {input.test} --labels {input.labels}"
            " --known {input.known}"
            " --out results/{wildcards.scale}/n2l/evaluate/seeds 2> {log}"


# all data sets together
# ----------------------
rule n2l_report_tables:
    input:
        runs=N2L.of_all(N2L.runs),
        learned=N2L.shown(),
        claims="steps/n2l/claims.yaml",
        tables=N2L.tables(),
    output:
        **report_outputs(
            "n2l",
            n2l_plan.FIGURES,
            {
                "over_tasks": "accuracy over tasks",
                "rows": "accuracy by row, after the last task",
                "confusion": "pseudo labels, before and after refinement",
                "singular": "singular values of the features",
                "theta": "theta, accuracy against it",
            },
        ),
    log:
        "logs/{scale}/n2l/report_tables.log",
    benchmark:
        "logs/{scale}/n2l/report_tables.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        rows=rows("n2l"),
        code=code("steps.n2l.report"),
    message:
        "{rule}: tables, claims, figures"
    shell:
        "python -m steps.n2l.report --scale {wildcards.scale} --rows {params.rows}"
        " --runs {input.runs} --learned {input.learned}"
        " --claims {input.claims} --tables {input.tables}"
        " --out results/{wildcards.scale}/n2l/evaluate 2> {log}"


# the phases, as targets for DVC and for people
# ---------------------------------------------
rule n2l_prepare:
    input:
        collect(
            [file for row in rows("n2l") for file in N2L.prepared(row)],
            scale=config["scale"],
        ),


rule n2l_train:
    input:
        collect(N2L.of_all(N2L.trained), scale=config["scale"]),


rule n2l_merge:
    input:
        collect(N2L.of_all(N2L.merged), scale=config["scale"]),


rule n2l_evaluate:
    input:
        collect(rules.n2l_report_tables.output, scale=config["scale"]),
