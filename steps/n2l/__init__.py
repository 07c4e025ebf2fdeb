"""N2L, naming to learn: class-incremental learning from unlabelled images and class names.

ICLR 2026, OpenReview Hc71kKCEFG. A frozen CLIP names the images of a task; the names are refined in
the leading directions of the task's features, images are weighted between and within classes, and a
ridge regression over tasks takes them in without keeping any image. For users: `N2LClassifier`.

    config, data_config, plan       the models of params.yaml and the files of the workflow
    prepare, train, merge, evaluate, report     the phases

    estimator       N2LClassifier, as scikit-learn has it
    ridge           weighted recursive ridge in three forms
    refine          zero-shot labels and their refinement
    weights         between classes and within a class
    labelling       these together: the labels and weights of a task
    baselines       RAIL's and RanPAC's expansions, the ridge search, fine-tuning
    learner         all rows of the tables, over the tasks of a class order
    measures        accuracy, forgetting, column lengths

    digits_data, emoji_data, hub_data       images of a data set, and features of frozen towers
    efficientnet, frozen_towers             EfficientNet-Lite0 and MiniLM from unpacked files
    clip                                    a CLIP trained here: towers and loss
    tune            sizes of a CLIP on validation images, by hand
    embeddings      what training leaves: features to learn from and to test, text, class orders
"""
