# CellDuality (OpenReview I4meJN28Ol). A job trains all rows of a seed.

from steps.cellduality import plan as cellduality_plan

CELLDUALITY = cellduality_plan.Files(config)


rule cellduality_prepare_data:
    input:
        assets=[file for asset in CELLDUALITY.assets() for file in asset_files(asset)],
    output:
        CELLDUALITY.prepared(),
    log:
        "logs/{scale}/cellduality/prepare_data_seed{seed}.log",
    benchmark:
        "logs/{scale}/cellduality/prepare_data_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        config=step_config("cellduality", "prepare"),
        code=code("steps.cellduality.prepare"),
    message:
        "{rule} seed {wildcards.seed}: splits, questions, the teacher's drafts"
    shell:
        "python -m steps.cellduality.prepare --config {params.config:q} --scale {wildcards.scale}"
        " --seed {wildcards.seed} --assets {input.assets}"
        " --out results/{wildcards.scale}/cellduality/prepare/seed{wildcards.seed} 2> {log}"


rule cellduality_train_rows:
    input:
        data=CELLDUALITY.prepared(),
        model=[
            file for asset in CELLDUALITY.model_assets() for file in asset_files(asset)
        ],
    output:
        CELLDUALITY.trained(),
    log:
        "logs/{scale}/cellduality/train_rows_seed{seed}.log",
    benchmark:
        "logs/{scale}/cellduality/train_rows_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    resources:
        gpu=gpus,
    params:
        rows=rows("cellduality"),
        launcher=launcher,
        device=device,
        config=CELLDUALITY.train_config,
        code=code("steps.cellduality.train"),
    message:
        "{rule} seed {wildcards.seed}: base model, SFT, GRPO"
    shell:
        "{params.launcher} steps.cellduality.train --config {params.config:q}"
        " --scale {wildcards.scale} --rows {params.rows} --seed {wildcards.seed}"
        " --device {params.device} --threads {threads} --data {input.data[0]}"
        " --out results/{wildcards.scale}/cellduality/train 2> {log}"


rule cellduality_merge_rows:
    input:
        CELLDUALITY.trained(),
    output:
        selection="results/{scale}/cellduality/merge/seed{seed}/selection.json",
        models=CELLDUALITY.merged(),
    log:
        "logs/{scale}/cellduality/merge_rows_seed{seed}.log",
    benchmark:
        "logs/{scale}/cellduality/merge_rows_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        rows=rows("cellduality"),
        starts=CELLDUALITY.starts(),
        adapters=CELLDUALITY.adapters(),
        config=step_config("cellduality", "merge"),
        code=code("steps.cellduality.merge"),
    message:
        "{rule} seed {wildcards.seed}: adapters into weights"
    shell:
        "python -m steps.cellduality.merge --config {params.config:q}"
        " --scale {wildcards.scale} --rows {params.rows} --starts {params.starts}"
        " --adapters {params.adapters} --seed {wildcards.seed} --threads {threads}"
        " --trained results/{wildcards.scale}/cellduality/train"
        " --out results/{wildcards.scale}/cellduality/merge 2> {log}"


rule cellduality_evaluate_rows:
    input:
        data=CELLDUALITY.prepared(),
        trained=CELLDUALITY.trained(),
        selection="results/{scale}/cellduality/merge/seed{seed}/selection.json",
        models=CELLDUALITY.merged(),
    output:
        runs="results/{scale}/cellduality/evaluate/seeds/seed{seed}.csv",
        answers="results/{scale}/cellduality/evaluate/seeds/seed{seed}_answers.json",
    log:
        "logs/{scale}/cellduality/evaluate_rows_seed{seed}.log",
    benchmark:
        "logs/{scale}/cellduality/evaluate_rows_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    resources:
        gpu=one_gpu,
    params:
        rows=rows("cellduality"),
        target=CELLDUALITY.target(),
        config=step_config("cellduality", "evaluate"),
        device=device,
        code=code("steps.cellduality.evaluate"),
    message:
        "{rule} seed {wildcards.seed}: answers to test questions, generated cells"
    shell:
        "python -m steps.cellduality.evaluate --config {params.config:q}"
        " --scale {wildcards.scale} --rows {params.rows} --target {params.target}"
        " --seed {wildcards.seed} --device {params.device} --threads {threads}"
        " --data {input.data[0]} --selection {input.selection}"
        " --trained results/{wildcards.scale}/cellduality/train"
        " --out results/{wildcards.scale}/cellduality/evaluate/seeds 2> {log}"


# all seeds together
# ------------------
rule cellduality_report_tables:
    input:
        runs=collect(
            "results/{{scale}}/cellduality/evaluate/seeds/seed{seed}.csv",
            seed=seeds("cellduality"),
        ),
        answers=collect(
            "results/{{scale}}/cellduality/evaluate/seeds/seed{seed}_answers.json",
            seed=seeds("cellduality"),
        ),
        data=collect(
            CELLDUALITY.prepared(), seed=seeds("cellduality"), allow_missing=True
        ),
        histories=collect(
            "results/{{scale}}/cellduality/train/{row}/seed{seed}/history.csv",
            row=rows("cellduality"),
            seed=seeds("cellduality"),
        ),
        claims="steps/cellduality/claims.yaml",
        tables="steps/cellduality/tables.yaml",
    output:
        **report_outputs(
            "cellduality",
            CELLDUALITY.figures(),
            {
                "training": "rewards and divergence over training",
                "rows": "main measures by row",
                "confusion": "types annotated, before and after RL",
                "generated": "generated cells among real ones (UMAP)",
                "embedding": "real cells by type and split (UMAP)",
                "quality": "quality of the measured cells",
            },
        ),
    log:
        "logs/{scale}/cellduality/report_tables.log",
    benchmark:
        "logs/{scale}/cellduality/report_tables.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        config=step_config("cellduality", "evaluate"),
        packaged=(
            "" if config["papers"]["cellduality"]["prepare"]["hub"] else "--packaged"
        ),
        code=code("steps.cellduality.report"),
    message:
        "{rule}: tables, claims, figures"
    shell:
        "python -m steps.cellduality.report --scale {wildcards.scale} --runs {input.runs}"
        " --config {params.config:q} --claims {input.claims} --tables {input.tables}"
        " --results results/{wildcards.scale}/cellduality {params.packaged}"
        " --out results/{wildcards.scale}/cellduality/evaluate 2> {log}"


# the phases, as targets for DVC and for people
# ---------------------------------------------
rule cellduality_prepare:
    input:
        collect(
            rules.cellduality_prepare_data.output,
            scale=config["scale"],
            seed=seeds("cellduality"),
        ),


rule cellduality_train:
    input:
        collect(
            rules.cellduality_train_rows.output,
            scale=config["scale"],
            seed=seeds("cellduality"),
        ),


rule cellduality_merge:
    input:
        collect(
            rules.cellduality_merge_rows.output,
            scale=config["scale"],
            seed=seeds("cellduality"),
        ),


rule cellduality_evaluate:
    input:
        collect(rules.cellduality_report_tables.output, scale=config["scale"]),


# SmolLM2 as the base model: run by hand, see docs/papers/cellduality.md
# ---------------------------------------------------------------------
if config["scale"] == "smollm":

    rule cellduality_smollm:
        input:
            rules.cellduality_evaluate.input,
