"""QUEST: A robust attention formulation using query-modulated spherical attention.

Govindarajan, Siden, Roll and Lindsten, ICLR 2026, arXiv 2604.00199. Attention whose keys have
length 1, `softmax(q kbar^T) v`: no key draws every query to itself, a query still sets how sharp
its own row is. The operator is `kernels.quest`; here are the paper's experiments.

A table is made by a task (`toy`); each phase has one command, which takes the task.

    config          what params.yaml may say
    plan            names that the workflow and the steps share
    rows            the attention rows as functions from queries and keys to logits
    prepare, train, merge, evaluate, report     the phases
    figures         figures of all tasks

    toy             the retrieval problem with its spurious pattern
    toy_models      one attention layer, and a small transformer
    toy_train       a grid of learning rates and decays of one row
    toy_evaluate    a grid -> success, accuracy, logits, key norms
    stacked         many small models trained as one
"""
