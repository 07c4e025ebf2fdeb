"""CellDuality: cell language models that reward themselves by reconstructing their input.

ICLR 2026, OpenReview I4meJN28Ol. Four tasks on cells as sentences of genes: annotation, drug
response, generation, perturbation. Each has a dual task that takes the answer and a part of the
input and must restore the rest; how well it does is the reward of GRPO, without any true answer.
For users: `rank_weighted_jaccard`, `ranked_genes`, `SelfSupervised` (a reward function for TRL).

    config, data_config, hub_config, plan       the models of params.yaml, the files of the workflow
    prepare, train, merge, evaluate, report     the phases

    sentences, splits                           cells as ranked genes; splits redrawn by each seed
    cells_data, drug_data                       measured cells (PBMC) and drug response (GDSC)
    simulator, perturb_data                     the krumsiek11 network, its genes perturbed
    hub_data, sources                           h5ad files of the paper's scale; all three together
    questions, vocabulary, prompts              what is asked, as text, and its duals
    teacher, filters, similarity                drafts of reasoning and answers, and which are kept

    sft, grpo, trainers, policy                 both stages by TRL; models, adapters
    dual, rewards, rewarding                    answers to dual prompts, and the rewards from them

    answering, scores, arrays                   answers of a model, and what they are worth
    measures, frechet, energy                   accuracy, kNN@k, diversity; scFID; E-distance
    specialists, baselines                      logistic regression, nearest neighbours, mean shift
    figures, cell_figures                       rewards, rows, confusion; cells as scanpy draws them
"""
