# CellDuality (OpenReview I4meJN28Ol). A job trains all rows of a seed; the first seeds have more.

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


for seed in seeds("cellduality"):

    rule:
        name:
            f"cellduality_train_{seed}"
        input:
            data=CELLDUALITY.prepared_of(seed),
            model=[
                file
                for asset in CELLDUALITY.model_assets()
                for file in asset_files(asset)
            ],
        output:
            CELLDUALITY.of_seed(CELLDUALITY.trained, seed),
        log:
            f"logs/{{scale}}/cellduality/train_{seed}.log",
        benchmark:
            f"logs/{{scale}}/cellduality/train_{seed}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            seed=seed,
            rows=CELLDUALITY.rows(seed),
            config=CELLDUALITY.train_config(seed),
            launcher=launcher,
            device=device,
            code=code("steps.cellduality.train"),
        message:
            "{rule}: base model, SFT, GRPO"
        shell:
            "{params.launcher} steps.cellduality.train --config {params.config:q}"
            " --scale {wildcards.scale} --rows {params.rows} --seed {params.seed}"
            " --device {params.device} --threads {threads} --data {input.data[0]}"
            " --out results/{wildcards.scale}/cellduality/train 2> {log}"

    rule:
        name:
            f"cellduality_merge_{seed}"
        input:
            CELLDUALITY.of_seed(CELLDUALITY.trained, seed),
        output:
            CELLDUALITY.selection(seed),
            CELLDUALITY.of_seed(CELLDUALITY.merged, seed),
        log:
            f"logs/{{scale}}/cellduality/merge_{seed}.log",
        benchmark:
            f"logs/{{scale}}/cellduality/merge_{seed}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            seed=seed,
            rows=CELLDUALITY.rows(seed),
            starts=CELLDUALITY.starts(seed),
            adapters=[row for row in CELLDUALITY.rows(seed) if CELLDUALITY.lora(row)],
            config=step_config("cellduality", "merge"),
            code=code("steps.cellduality.merge"),
        message:
            "{rule}: adapters into weights"
        shell:
            "python -m steps.cellduality.merge --config {params.config:q}"
            " --scale {wildcards.scale} --rows {params.rows} --starts {params.starts}"
            " --adapters {params.adapters} --seed {params.seed} --threads {threads}"
            " --trained results/{wildcards.scale}/cellduality/train"
            " --out results/{wildcards.scale}/cellduality/merge 2> {log}"

    rule:
        name:
            f"cellduality_evaluate_{seed}"
        input:
            data=CELLDUALITY.prepared_of(seed),
            trained=CELLDUALITY.of_seed(CELLDUALITY.trained, seed),
            models=CELLDUALITY.selection(seed),
            merged=CELLDUALITY.of_seed(CELLDUALITY.merged, seed),
        output:
            CELLDUALITY.runs(seed),
        log:
            f"logs/{{scale}}/cellduality/evaluate_{seed}.log",
        benchmark:
            f"logs/{{scale}}/cellduality/evaluate_{seed}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            seed=seed,
            rows=CELLDUALITY.rows(seed),
            target=CELLDUALITY.target(),
            config=step_config("cellduality", "evaluate"),
            device=device,
            code=code("steps.cellduality.evaluate"),
        message:
            "{rule}: answers to test questions, generated cells"
        shell:
            "python -m steps.cellduality.evaluate --config {params.config:q}"
            " --scale {wildcards.scale} --rows {params.rows} --target {params.target}"
            " --seed {params.seed} --device {params.device} --threads {threads}"
            " --data {input.data[0]} --models {input.models}"
            " --trained results/{wildcards.scale}/cellduality/train"
            " --out results/{wildcards.scale}/cellduality/evaluate/seeds 2> {log}"


# all seeds together
# ------------------
rule cellduality_report_tables:
    input:
        runs=[
            file
            for file in CELLDUALITY.of_all(CELLDUALITY.runs)
            if file.endswith(".csv")
        ],
        answers=[
            file
            for file in CELLDUALITY.of_all(CELLDUALITY.runs)
            if file.endswith(".json")
        ],
        data=CELLDUALITY.of_all(CELLDUALITY.prepared_of),
        trained=CELLDUALITY.histories(),
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
        collect(CELLDUALITY.of_all(CELLDUALITY.prepared_of), scale=config["scale"]),


rule cellduality_train:
    input:
        collect(
            [
                file
                for seed in seeds("cellduality")
                for file in CELLDUALITY.of_seed(CELLDUALITY.trained, seed)
            ],
            scale=config["scale"],
        ),


rule cellduality_merge:
    input:
        collect(
            [
                file
                for seed in seeds("cellduality")
                for file in [
                    CELLDUALITY.selection(seed),
                    *CELLDUALITY.of_seed(CELLDUALITY.merged, seed),
                ]
            ],
            scale=config["scale"],
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
