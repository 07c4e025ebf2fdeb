"""WSM: Decay-Free Learning Rate Schedule via Checkpoint Merging for LLM Pre-training.

Tian et al., ICLR 2026 (oral), arXiv 2507.17634. A run at a constant learning rate, with its recent
checkpoints averaged, stands in for a run whose learning rate decays.

    config          what params.yaml may say
    prepare         corpora -> token files, multiple choice, questions
    model           the language model (a small GPT, or a Llama from transformers)
    data            batches of prompts with their answers
    train           the constant-rate trunk, and the branches that leave it
    curves          decay schedule <-> merge weights (Theorem 3.1)
    merge           checkpoints -> averaged models; also a command of its own
    continuation    fine-tuning of chosen models on questions and answers
    measure         bits per byte, accuracy, multiple choice
    evaluate        measurements of one seed -> runs
    report          runs of all seeds -> tables, claims, figures
"""
