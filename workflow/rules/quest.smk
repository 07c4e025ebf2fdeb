# QUEST (arXiv 2604.00199). A table is made by a task; each task has its own prepare, train, merge
# and evaluate rules, and one report collects them.

from steps.quest import config as quest_config
from steps.quest import plan as quest_plan


# the toy retrieval problem
# -------------------------
rule quest_prepare_toy:
    output:
        data="results/{scale}/quest/prepare/toy.safetensors",
        manifest="results/{scale}/quest/prepare/toy.json",
    log:
        "logs/{scale}/quest/prepare_toy.log",
    benchmark:
        "logs/{scale}/quest/prepare_toy.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        config=step_config("quest", "prepare", model=quest_config.ToyPrepare),
        code=code("steps.quest.prepare"),
    message:
        "{rule}: the spurious pattern, test samples"
    shell:
        "python -m steps.quest.prepare --config {params.config:q} --scale {wildcards.scale}"
        " --task toy --threads {threads} --out results/{wildcards.scale}/quest/prepare 2> {log}"


rule quest_train_toy:
    input:
        data="results/{scale}/quest/prepare/toy.safetensors",
    output:
        files=collect(
            "results/{{scale}}/quest/train/toy/{file}",
            file=quest_plan.toy_files(config),
        ),
    log:
        "logs/{scale}/quest/train_toy_seed{seed}.log",
    benchmark:
        "logs/{scale}/quest/train_toy_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        rows=quest_plan.rows_of(config, "toy"),
        config=step_config(
            "quest",
            "train",
            row=quest_plan.rows_of(config, "toy")[0],
            model=quest_config.ToyTrain,
        ),
        code=code("steps.quest.train"),
    message:
        "{rule} seed {wildcards.seed}: every row over the grid of rates and decays"
    shell:
        "python -m steps.quest.train --config {params.config:q} --scale {wildcards.scale}"
        " --task toy --rows {params.rows} --seed {wildcards.seed} --threads {threads}"
        " --data {input.data} --out results/{wildcards.scale}/quest/train/toy 2> {log}"


rule quest_merge_toy:
    input:
        models=collect(
            "results/{{scale}}/quest/train/toy/{file}",
            file=quest_plan.toy_files(config),
        ),
    output:
        selection="results/{scale}/quest/merge/toy/seed{seed}/selection.json",
    log:
        "logs/{scale}/quest/merge_toy_seed{seed}.log",
    benchmark:
        "logs/{scale}/quest/merge_toy_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        rows=quest_plan.rows_of(config, "toy"),
        code=code("steps.quest.merge"),
    message:
        "{rule} seed {wildcards.seed}: which models are evaluated"
    shell:
        "python -m steps.quest.merge --runs results/{wildcards.scale}/quest/train/toy"
        " --rows {params.rows} --seed {wildcards.seed}"
        " --out results/{wildcards.scale}/quest/merge/toy/seed{wildcards.seed} 2> {log}"


rule quest_evaluate_toy:
    input:
        selection="results/{scale}/quest/merge/toy/seed{seed}/selection.json",
        data="results/{scale}/quest/prepare/toy.safetensors",
        models=collect(
            "results/{{scale}}/quest/train/toy/{file}",
            file=quest_plan.toy_files(config),
        ),
    output:
        runs="results/{scale}/quest/evaluate/seeds/toy_seed{seed}.csv",
        maps="results/{scale}/quest/evaluate/seeds/toy_attention_seed{seed}.csv",
    log:
        "logs/{scale}/quest/evaluate_toy_seed{seed}.log",
    benchmark:
        "logs/{scale}/quest/evaluate_toy_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        config=step_config("quest", "evaluate", model=quest_config.ToyEvaluate),
        code=code("steps.quest.evaluate"),
    message:
        "{rule} seed {wildcards.seed}: success, accuracy, logits, key norms"
    shell:
        "python -m steps.quest.evaluate --config {params.config:q} --scale {wildcards.scale}"
        " --task toy --seed {wildcards.seed} --threads {threads}"
        " --selection {input.selection} --data {input.data}"
        " --out results/{wildcards.scale}/quest/evaluate/seeds 2> {log}"


# all tasks together
# ------------------
rule quest_report_tables:
    input:
        runs=collect(
            "results/{{scale}}/quest/evaluate/seeds/toy_seed{seed}.csv",
            seed=quest_plan.seeds_of(config, "toy"),
        ),
        attention=f"results/{{scale}}/quest/evaluate/seeds/toy_attention_seed{seeds('quest')[0]}.csv",
        histories=collect(
            "results/{{scale}}/quest/train/toy/{row}/seed{seed}/history.csv",
            row=quest_plan.rows_of(config, "toy"),
            seed=quest_plan.seeds_of(config, "toy"),
        ),
        claims="steps/quest/claims.yaml",
        tables="steps/quest/tables.yaml",
    output:
        runs="results/{scale}/quest/evaluate/runs.csv",
        table="results/{scale}/quest/evaluate/table.csv",
        markdown="results/{scale}/quest/evaluate/table.md",
        page=report(
            "results/{scale}/quest/evaluate/table.html",
            caption="../report/table.rst",
            category="quest",
            labels={"what": "tables and claims"},
        ),
        claims="results/{scale}/quest/evaluate/claims.json",
        metrics="results/{scale}/quest/evaluate/metrics.json",
        figures=report(
            collect(
                "results/{{scale}}/quest/evaluate/figures/{name}.svg",
                name=quest_plan.FIGURES,
            ),
            caption="../report/figure.rst",
            category="quest",
            labels={"what": "figure"},
        ),
    log:
        "logs/{scale}/quest/report_tables.log",
    benchmark:
        "logs/{scale}/quest/report_tables.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        code=code("steps.quest.report"),
    message:
        "{rule}: tables, claims, figures"
    shell:
        "python -m steps.quest.report --scale {wildcards.scale} --runs {input.runs}"
        " --attention {input.attention} --toy results/{wildcards.scale}/quest/train/toy"
        " --claims {input.claims} --tables {input.tables}"
        " --out results/{wildcards.scale}/quest/evaluate 2> {log}"


# the phases, as targets for DVC and for people
# ---------------------------------------------
rule quest_prepare:
    input:
        collect(rules.quest_prepare_toy.output, scale=config["scale"]),


rule quest_train:
    input:
        collect(
            rules.quest_train_toy.output,
            scale=config["scale"],
            seed=quest_plan.seeds_of(config, "toy"),
        ),


rule quest_merge:
    input:
        collect(
            rules.quest_merge_toy.output,
            scale=config["scale"],
            seed=quest_plan.seeds_of(config, "toy"),
        ),


rule quest_evaluate:
    input:
        collect(rules.quest_report_tables.output, scale=config["scale"]),
