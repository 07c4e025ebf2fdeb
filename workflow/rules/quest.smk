# QUEST (arXiv 2604.00199). A task makes tables; every task has the same four kinds of rules, and
# one report collects them all.

from steps.quest import plan as quest_plan
from steps.quest.config import Evaluate as QuestEvaluate
from steps.quest.config import Prepare as QuestPrepare
from steps.quest.config import Train as QuestTrain

QUEST = quest_plan.Files(config)


for data in QUEST.data():

    rule:
        name:
            f"quest_prepare_{data}"
        input:
            assets=[
                file for asset in QUEST.assets(data) for file in asset_files(asset)
            ]
            + QUEST.corpora(data),
        output:
            files=QUEST.prepared(data),
        log:
            f"logs/{{scale}}/quest/prepare_{data}.log",
        benchmark:
            f"logs/{{scale}}/quest/prepare_{data}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            task=data,
            config=step_config(
                "quest", "prepare", model=configuration.part(QuestPrepare, data)
            ),
            code=code(f"steps.quest.{data}_prepare"),
            step=code("steps.quest.prepare"),
        message:
            "{rule}: a manifest, and tensors of what is not on a hub"
        shell:
            "python -m steps.quest.prepare --config {params.config:q} --scale {wildcards.scale}"
            " --task {params.task} --assets {input.assets} --threads {threads}"
            " --out results/{wildcards.scale}/quest/prepare 2> {log}"


for task in QUEST.tasks():
    for job, members in QUEST.jobs(task).items():

        rule:
            name:
                f"quest_train_{job}"
            input:
                data=QUEST.prepared(quest_plan.TASKS[task].data),
            output:
                files=QUEST.trained(task, members),
            log:
                f"logs/{{scale}}/quest/train_{job}_seed{{seed}}.log",
            benchmark:
                f"logs/{{scale}}/quest/train_{job}_seed{{seed}}.tsv"
            conda:
                "../envs/python.yaml"
            threads: QUEST.threads(task)
            resources:
                gpu=gpus if quest_plan.TASKS[task].launched else 0,
            params:
                task=task,
                rows=members,
                launcher=launcher if quest_plan.TASKS[task].launched else "python -m",
                device=device if quest_plan.TASKS[task].launched else "cpu",
                config=step_config(
                    "quest",
                    "train",
                    row=members[0],
                    model=configuration.part(QuestTrain, task),
                ),
                code=code(f"steps.quest.{task}_train"),
                step=code("steps.quest.train"),
            message:
                "{rule} seed {wildcards.seed}: {params.rows}"
            shell:
                "{params.launcher} steps.quest.train --config {params.config:q}"
                " --scale {wildcards.scale} --device {params.device} --task {params.task}"
                " --rows {params.rows} --seed {wildcards.seed} --threads {threads}"
                " --data {input.data[0]}"
                " --out results/{wildcards.scale}/quest/train/{params.task} 2> {log}"

    rule:
        name:
            f"quest_merge_{task}"
        input:
            models=QUEST.models(task),
        output:
            selection=QUEST.selection(task),
        log:
            f"logs/{{scale}}/quest/merge_{task}_seed{{seed}}.log",
        benchmark:
            f"logs/{{scale}}/quest/merge_{task}_seed{{seed}}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            task=task,
            code=code("steps.quest.merge"),
        message:
            "{rule} seed {wildcards.seed}: which models are evaluated"
        shell:
            "python -m steps.quest.merge --models {input.models}"
            " --out results/{wildcards.scale}/quest/merge/{params.task}/seed{wildcards.seed}"
            " 2> {log}"

    rule:
        name:
            f"quest_evaluate_{task}"
        input:
            selection=QUEST.selection(task),
            data=QUEST.prepared(quest_plan.TASKS[task].data),
            models=QUEST.trained(task),
        output:
            runs=QUEST.runs(task),
            maps=QUEST.maps(task),
        log:
            f"logs/{{scale}}/quest/evaluate_{task}_seed{{seed}}.log",
        benchmark:
            f"logs/{{scale}}/quest/evaluate_{task}_seed{{seed}}.tsv"
        conda:
            "../envs/python.yaml"
        threads: QUEST.threads(task)
        resources:
            gpu=one_gpu if quest_plan.TASKS[task].launched else 0,
        params:
            task=task,
            device=device if quest_plan.TASKS[task].launched else "cpu",
            config=step_config(
                "quest",
                "evaluate",
                model=configuration.part(QuestEvaluate, task),
            ),
            code=code(f"steps.quest.{task}_evaluate"),
            step=code("steps.quest.evaluate"),
        message:
            "{rule} seed {wildcards.seed}: the measures of its tables"
        shell:
            "python -m steps.quest.evaluate --config {params.config:q} --scale {wildcards.scale}"
            " --device {params.device} --task {params.task} --seed {wildcards.seed}"
            " --threads {threads} --selection {input.selection} --data {input.data[0]}"
            " --out results/{wildcards.scale}/quest/evaluate/seeds 2> {log}"


# all tasks together
# ------------------
rule quest_report_tables:
    input:
        runs=QUEST.of_all(QUEST.runs),
        maps=QUEST.of_all(QUEST.maps),
        histories=QUEST.of_all(QUEST.histories),
        claims="steps/quest/claims.yaml",
        tables="steps/quest/tables.yaml",
    output:
        **report_outputs(
            "quest",
            QUEST.figures(),
            {
                "toy_rates": "toy, accuracy by learning rate",
                "toy_logits": "toy, largest logit over training",
                "toy_attention": "toy, attention with and without the pattern",
                "images_training": "images, loss and largest logit over training",
                "images_robustness": "images, accuracy under corruptions and attacks",
                "images_attention": "images, attention maps with and without the pattern",
                "sweep_stability": "learning rates, final loss and largest logit",
                "language_training": "language, loss and largest logit over training",
            },
        ),
    log:
        "logs/{scale}/quest/report_tables.log",
    benchmark:
        "logs/{scale}/quest/report_tables.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        tasks=QUEST.tasks(),
        code=code("steps.quest.report"),
        figures=[code_digest(f"steps.quest.{task}_figures") for task in QUEST.tasks()],
    message:
        "{rule}: tables, claims, figures"
    shell:
        "python -m steps.quest.report --scale {wildcards.scale} --tasks {params.tasks}"
        " --runs {input.runs} --trained results/{wildcards.scale}/quest/train"
        " --claims {input.claims} --tables {input.tables}"
        " --out results/{wildcards.scale}/quest/evaluate 2> {log}"


# the phases, as targets for DVC and for people
# ---------------------------------------------
rule quest_prepare:
    input:
        collect(
            [file for data in QUEST.data() for file in QUEST.prepared(data)],
            scale=config["scale"],
        ),


rule quest_train:
    input:
        collect(QUEST.of_all(QUEST.trained), scale=config["scale"]),


rule quest_merge:
    input:
        collect(QUEST.of_all(QUEST.selection), scale=config["scale"]),


rule quest_evaluate:
    input:
        collect(rules.quest_report_tables.output, scale=config["scale"]),
