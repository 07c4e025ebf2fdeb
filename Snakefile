# Retable: every result table of every paper, as one workflow. `snakemake -n` shows what would run.


report: "workflow/report/workflow.rst"


# load params.yaml and helpers, then check every paper's configuration before anything runs
# -----------------------------------------------------------------------------------------
include: "workflow/rules/common.smk"


check_config()


wildcard_constraints:
    scale=config["scale"],
    seed=r"\d+",


# the default target, then the rules
# ----------------------------------
rule all:
    default_target: True
    input:
        collect(
            "results/{scale}/{paper}/evaluate/claims.json",
            scale=config["scale"],
            paper=PAPERS,
        ),
        collect("results/ledger/{scale}/claims.csv", scale=config["scale"]),


include: "workflow/rules/assets.smk"
include: "workflow/rules/tables.smk"


for paper in PAPERS:

    include: f"workflow/rules/{paper}.smk"


onstart:
    hold_run_lock()
    wake_scheduler_by_events_alone()
    show_progress()
