# The ledger of all papers. Each paper's own tables are made by its evaluate rules.


rule ledger:
    input:
        claims=collect(
            "results/{scale}/{paper}/evaluate/claims.json",
            scale=config["scale"],
            paper=PAPERS,
        ),
    output:
        csv="results/ledger/{scale}/claims.csv",
        page=report(
            "results/ledger/{scale}/ledger.html",
            caption="../report/ledger.rst",
            category="All papers",
            labels={"entry": "Ledger: every claim with its verdict"},
        ),
    log:
        "logs/{scale}/ledger.log",
    benchmark:
        "logs/{scale}/ledger.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        code=code("steps.shared.ledger"),
    message:
        "{rule}: every claim with its verdict"
    shell:
        "python -m steps.shared.ledger --claims {input.claims}"
        " --out {output.csv} --page {output.page} 2> {log}"
