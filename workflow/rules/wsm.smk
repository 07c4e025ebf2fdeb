# WSM (arXiv 2507.17634): a constant-rate trunk, its branches, merges, measurements.

from steps.wsm import plan as wsm_plan
from steps.wsm.config import Trunk as WsmTrunk

WSM = wsm_plan.Files(config)


rule wsm_prepare_data:
    input:
        general=WSM.corpora("general"),
        anneal=WSM.corpora("anneal"),
        lexicon="assets/corpora/wordnet.jsonl",
    output:
        tokens=collect("results/{{scale}}/wsm/prepare/{name}.npy", name=wsm_plan.TOKENS),
        tasks=collect("results/{{scale}}/wsm/prepare/{name}.json", name=wsm_plan.TASKS),
        tokenizer="results/{scale}/wsm/prepare/tokenizer.json",
        manifest="results/{scale}/wsm/prepare/manifest.json",
    log:
        "logs/{scale}/wsm/prepare_data.log",
    benchmark:
        "logs/{scale}/wsm/prepare_data.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        config=step_config("wsm", "prepare"),
        code=code("steps.wsm.prepare"),
    message:
        "{rule}: tokens and tasks"
    shell:
        "python -m steps.wsm.prepare --config {params.config:q} --scale {wildcards.scale}"
        " --general {input.general} --anneal {input.anneal} --lexicon {input.lexicon}"
        " --threads {threads} --out results/{wildcards.scale}/wsm/prepare 2> {log}"


rule wsm_train_trunk:
    input:
        tokens="results/{scale}/wsm/prepare/general_train.npy",
        validation="results/{scale}/wsm/prepare/general_validation.npy",
        data="results/{scale}/wsm/prepare/manifest.json",
    output:
        state="results/{scale}/wsm/train/trunk/seed{seed}/state.safetensors",
        history="results/{scale}/wsm/train/trunk/seed{seed}/history.csv",
    log:
        "logs/{scale}/wsm/train_trunk_seed{seed}.log",
    benchmark:
        "logs/{scale}/wsm/train_trunk_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    resources:
        gpu=gpus,
    params:
        launcher=launcher,
        device=device,
        config=step_config("wsm", "train", row="constant", model=WsmTrunk),
        code=code("steps.wsm.train"),
    message:
        "{rule} seed {wildcards.seed}: constant rate on the general corpus"
    shell:
        "{params.launcher} steps.wsm.train --config {params.config:q} --scale {wildcards.scale}"
        " --device {params.device}"
        " --seed {wildcards.seed} --threads {threads} --tokens {input.tokens}"
        " --validation {input.validation} --data {input.data}"
        " --out results/{wildcards.scale}/wsm/train/trunk/seed{wildcards.seed} 2> {log}"


for row in rows("wsm"):

    rule:
        name:
            f"wsm_train_{row}"
        input:
            trunk="results/{scale}/wsm/train/trunk/seed{seed}/state.safetensors",
            tokens="results/{scale}/wsm/prepare/anneal_train.npy",
            validation="results/{scale}/wsm/prepare/anneal_validation.npy",
            data="results/{scale}/wsm/prepare/manifest.json",
        output:
            checkpoints=WSM.checkpoints(row),
            history=f"results/{{scale}}/wsm/train/{row}/seed{{seed}}/history.csv",
        log:
            f"logs/{{scale}}/wsm/train_{row}_seed{{seed}}.log",
        benchmark:
            f"logs/{{scale}}/wsm/train_{row}_seed{{seed}}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        resources:
            gpu=gpus,
        params:
            row=row,
            launcher=launcher,
            device=device,
            config=step_config("wsm", "train", row=row),
            code=code("steps.wsm.train"),
        message:
            "{rule} seed {wildcards.seed}: the trunk continued on the annealing corpus"
        shell:
            "{params.launcher} steps.wsm.train --config {params.config:q} --scale {wildcards.scale}"
            " --device {params.device}"
            " --row {params.row} --seed {wildcards.seed} --threads {threads}"
            " --trunk {input.trunk} --tokens {input.tokens} --validation {input.validation}"
            " --data {input.data}"
            " --out results/{wildcards.scale}/wsm/train/{params.row}/seed{wildcards.seed} 2> {log}"


rule wsm_merge_checkpoints:
    input:
        checkpoints=WSM.sources(),
    output:
        models=WSM.merged(),
        selection="results/{scale}/wsm/merge/seed{seed}/selection.json",
    log:
        "logs/{scale}/wsm/merge_checkpoints_seed{seed}.log",
    benchmark:
        "logs/{scale}/wsm/merge_checkpoints_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        rows=rows("wsm"),
        config=step_config("wsm", "merge"),
        code=code("steps.wsm.merge"),
    message:
        "{rule} seed {wildcards.seed}: every curve, window and interval"
    shell:
        "python -m steps.wsm.merge --config {params.config:q} --scale {wildcards.scale}"
        " --seed {wildcards.seed} --trained results/{wildcards.scale}/wsm/train"
        " --rows {params.rows}"
        " --out results/{wildcards.scale}/wsm/merge/seed{wildcards.seed} 2> {log}"


rule wsm_evaluate_models:
    input:
        selection="results/{scale}/wsm/merge/seed{seed}/selection.json",
        models=WSM.merged(),
        trained=WSM.sources(),
        tokens=collect("results/{{scale}}/wsm/prepare/{name}.npy", name=wsm_plan.TOKENS),
        tasks=collect("results/{{scale}}/wsm/prepare/{name}.json", name=wsm_plan.TASKS),
        data="results/{scale}/wsm/prepare/manifest.json",
    output:
        runs="results/{scale}/wsm/evaluate/seeds/seed{seed}.csv",
        outcomes="results/{scale}/wsm/evaluate/seeds/seed{seed}_items.csv",
    log:
        "logs/{scale}/wsm/evaluate_models_seed{seed}.log",
    benchmark:
        "logs/{scale}/wsm/evaluate_models_seed{seed}.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    resources:
        gpu=one_gpu,
    params:
        device=device,
        config=step_config("wsm", "evaluate"),
        code=code("steps.wsm.evaluate"),
    message:
        "{rule} seed {wildcards.seed}: bits per byte, accuracy, multiple choice, continuation"
    shell:
        "python -m steps.wsm.evaluate --config {params.config:q} --scale {wildcards.scale}"
        " --device {params.device} --threads {threads}"
        " --seed {wildcards.seed} --selection {input.selection}"
        " --data {input.data}"
        " --out results/{wildcards.scale}/wsm/evaluate/seeds 2> {log}"


rule wsm_report_tables:
    input:
        runs=collect(
            "results/{{scale}}/wsm/evaluate/seeds/seed{seed}.csv", seed=seeds("wsm")
        ),
        outcomes=collect(
            "results/{{scale}}/wsm/evaluate/seeds/seed{seed}_items.csv",
            seed=seeds("wsm"),
        ),
        histories=collect(
            "results/{{scale}}/wsm/train/{row}/seed{seed}/history.csv",
            row=["trunk", *rows("wsm")],
            seed=seeds("wsm"),
        ),
        claims="steps/wsm/claims.yaml",
        tables="steps/wsm/tables.yaml",
    output:
        **report_outputs(
            "wsm",
            wsm_plan.FIGURES,
            {
                "training": "training, loss and learning rate of the branches",
                "rows": "main measures by row",
                "sweeps": "sweeps over merge duration and number of checkpoints",
            },
        ),
        outcomes="results/{scale}/wsm/evaluate/items.csv",
    log:
        "logs/{scale}/wsm/report_tables.log",
    benchmark:
        "logs/{scale}/wsm/report_tables.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        rows=rows("wsm"),
        code=code("steps.wsm.report"),
    message:
        "{rule}: tables, claims, figures"
    shell:
        "python -m steps.wsm.report --rows {params.rows} --scale {wildcards.scale}"
        " --runs {input.runs} --items {input.outcomes}"
        " --trained results/{wildcards.scale}/wsm/train"
        " --claims {input.claims} --tables {input.tables}"
        " --out results/{wildcards.scale}/wsm/evaluate 2> {log}"


# the phases, as targets for DVC and for people
# ---------------------------------------------
rule wsm_prepare:
    input:
        collect(rules.wsm_prepare_data.output, scale=config["scale"]),


rule wsm_train:
    input:
        collect(rules.wsm_train_trunk.output, scale=config["scale"], seed=seeds("wsm")),
        collect(WSM.sources(), scale=config["scale"], seed=seeds("wsm")),
        collect(
            "results/{scale}/wsm/train/{row}/seed{seed}/history.csv",
            scale=config["scale"],
            row=rows("wsm"),
            seed=seeds("wsm"),
        ),


rule wsm_merge:
    input:
        collect(
            rules.wsm_merge_checkpoints.output,
            scale=config["scale"],
            seed=seeds("wsm"),
        ),


rule wsm_evaluate:
    input:
        collect(rules.wsm_report_tables.output, scale=config["scale"]),
