"""QUEST: A robust attention formulation using query-modulated spherical attention.

Govindarajan, Siden, Roll and Lindsten, ICLR 2026, arXiv 2604.00199. Attention whose keys have
length 1, `softmax(q kbar^T) v`: no key draws every query to itself, a query still sets how sharp
its own row is. The operator is `kernels.quest`; here are the paper's experiments.

A table is made by a task: `toy`, `images`, `sweep`, `language`. Each phase has one command, which
takes the task and finds its modules by name: <task>_config, <task>_prepare, <task>_train,
<task>_evaluate, <task>_figures; <task>_measure has what training and evaluation both measure. A new
task adds these, its entries in `config` and `plan`, its tables and claims.

    config, plan    the models of params.yaml and the files of the workflow, for all tasks
    jobs            what the jobs of every task share
    prepare, train, merge, evaluate, report     the phases
    row_training    how a job trains the rows of a task one after another
    figure_data     what the figures of several tasks share
    tune            peak learning rates on validation data of tuning seeds, by hand

    rows            the attention rows as functions from queries and keys to logits
    attention       a self-attention layer of any row
    blocks          the transformer of every row: its blocks, its start, its files
    vit, language_model         a vision transformer and a language model of them
    stacked         many small models trained as one

    toy, toy_models             the retrieval problem with its spurious pattern, its two networks
    images_data                 images in one form, whatever their source:
    digits, hub_images          packaged digits, or a data set of the hub
    corruptions, attacks        common corruptions, and FGSM and PGD
"""
