"""The downstream tasks: one right option of four, the wrong ones wrong in the way that is said."""

import numpy as np
import pytest

from steps.shared.corpora import CATEGORIES
from steps.shared.runtime import InputError
from steps.wsm.tasks import gloss_items, question_items

WORDS = [f"{a}{b}" for a in "bdfgklmnprst" for b in ("ad", "en", "ip", "ol", "um")]


def entries(count: int, **changes) -> list[dict]:
    """Return nouns with glosses of six different words."""
    rng = np.random.default_rng(0)
    kinds = list(CATEGORIES.values())[1:]
    return [
        {
            "headword": f"word{number}",
            "gloss": " ".join(rng.choice(WORDS, 6, replace=False)),
            "category": kinds[number % len(kinds)],
            **changes,
        }
        for number in range(count)
    ]


def glosses(own: list[dict]) -> dict[str, str]:
    return {f"{one['headword']}: ": one["gloss"] for one in own}


def differing(one: str, other: str) -> list[int]:
    pairs = zip(one.split(), other.split(), strict=True)
    return [place for place, (a, b) in enumerate(pairs) if a != b]


def wrong_options(item: dict) -> list[str]:
    options = [option.removesuffix("\n") for option in item["options"]]
    assert len(set(options)) == 4
    return [option for index, option in enumerate(options) if index != item["answer"]]


def test_the_right_option_is_the_gloss_of_the_lemma():
    own = entries(300)
    items = gloss_items(own, 300)
    assert len({item["prompt"] for item in items}) == 300
    for item in items:
        assert item["options"][item["answer"]] == glosses(own)[item["prompt"]] + "\n"
    # 300 answers over 4 positions: 75 expected, standard deviation 7.5
    assert np.bincount([item["answer"] for item in items], minlength=4).min() > 45


def test_wrong_options_exchange_neighbours_or_replace_one_word():
    own = entries(100)
    items = gloss_items(own, 100)
    for item in items[::2]:
        right = glosses(own)[item["prompt"]]
        for wrong in wrong_options(item):
            first, second = differing(right, wrong)
            assert second == first + 1 and sorted(right.split()) == sorted(wrong.split())
    for item in items[1::2]:
        right = glosses(own)[item["prompt"]]
        places = [differing(right, wrong) for wrong in wrong_options(item)]
        assert len(places[0]) == 1 and places[0][0] > 0 and places[1:] == places[:1] * 2


def test_a_gloss_that_cannot_be_spoiled_in_three_ways_is_left_out():
    own = entries(20) + entries(20, gloss="too short here") + entries(20, gloss="a a a a a b")
    # "a a a a a b" has one exchange only, yet its words can be replaced
    items = gloss_items(own, 20)
    assert all("too short here\n" not in item["options"] for item in items)
    assert all(not item["options"][item["answer"]].startswith("a a") for item in items[::2])


def test_questions_ask_for_the_category_of_a_noun():
    own = [*entries(400), *entries(50, category=""), *entries(50, category="top")]
    items = question_items(own, 400, "test-questions")
    kinds = {f"Q: what is {e['headword']}, {e['gloss']}?\nA: ": e["category"] for e in own[:400]}
    for item in items:
        assert item["options"][item["answer"]] == f"a kind of {kinds[item['prompt']]}.\n"
        assert len(set(item["options"])) == 4
    assert np.bincount([item["answer"] for item in items], minlength=4).min() > 60


def test_no_wrong_category_is_right_for_another_sense():
    kinds = list(CATEGORIES.values())[1:]
    own = [dict(entries(1)[0], category=kind) for kind in kinds[:20]]
    for item in question_items(own, 20, "test-questions"):
        right = {f"a kind of {kind}.\n" for kind in kinds[:20]}
        assert len(right & set(item["options"])) == 1


def test_too_few_items_are_refused_in_one_line():
    with pytest.raises(InputError, match="gloss_items: 31 items asked for, the corpus gives 30"):
        gloss_items(entries(30), 31)
    with pytest.raises(InputError, match="test-questions: 31 items asked for"):
        question_items(entries(30), 31, "test-questions")
