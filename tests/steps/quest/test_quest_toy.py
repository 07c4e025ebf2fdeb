"""The toy problem and its two networks."""

import numpy as np
import pytest
import torch

from steps.quest import toy, toy_models, toy_train
from steps.quest.row_names import ROWS
from steps.quest.toy_config import Problem, Toy
from steps.shared.runtime import InputError, stream, torch_generator, write_json

PROBLEM = Problem(
    num_tokens=12,
    dim=8,
    num_answers=10,
    answer_sd=3.0,
    bias_norm=3.0,
    bias_variance=0.1,
    biased_share=0.5,
    num_test=20,
)
CONFIG = Toy(
    rows={"minimal": ["quest"], "full": ["quest"]},
    width=8,
    layers=2,
    heads=2,
    learning_rates=[0.01],
    weight_decays=[0.0],
    beta1=0.9,
    beta2=0.999,
    steps={"minimal": 4, "full": 4},
    batch_size=4,
    num_probe=8,
    log_every=2,
    checkpoint_every=2,
)


def draw(count: int, share: float) -> toy.Samples:
    rng = stream("quest", "test", 0)
    return toy.draw(PROBLEM, toy.bias_vector(PROBLEM), rng, count, biased_share=share)


def answer_keys(samples: toy.Samples) -> np.ndarray:
    return samples.keys_BND[torch.arange(len(samples.keys_BND)), samples.position_B].numpy()


def test_the_answer_key_has_the_spread_of_its_kind():
    bias = toy.bias_vector(PROBLEM)
    assert np.linalg.norm(bias) == pytest.approx(3)
    robust, biased = answer_keys(draw(20000, 0.0)), answer_keys(draw(20000, 1.0))
    # 20,000 draws: a mean is within 5 sd / sqrt(20000), a variance within 5 sqrt(2 / 20000) parts
    assert np.abs(robust.mean(0)).max() < 5 * 3 / 20000**0.5
    assert np.abs(biased.mean(0) - bias).max() < 5 * 0.1**0.5 / 20000**0.5
    assert robust.var(0) == pytest.approx(np.full(8, 9.0), rel=0.05)
    assert biased.var(0) == pytest.approx(np.full(8, 0.1), rel=0.05)


def test_all_other_keys_are_standard_normal_and_positions_uniform():
    samples = draw(20000, 0.5)
    others = torch.ones(20000, 12, dtype=torch.bool)
    others[torch.arange(20000), samples.position_B] = False
    keys = samples.keys_BND[others]
    assert float(keys.mean()) == pytest.approx(0, abs=0.005)
    assert float(keys.var()) == pytest.approx(1, rel=0.01)
    assert torch.bincount(samples.position_B, minlength=12).min() > 1400
    assert float(samples.biased_B.double().mean()) == pytest.approx(0.5, abs=0.02)
    assert samples.answers_BN.min() == 0 and samples.answers_BN.max() == 9


def test_the_target_is_the_answer_tokens_answer():
    samples = draw(50, 0.5)
    pairs = zip(samples.answers_BN.tolist(), samples.position_B.tolist(), strict=True)
    assert samples.target_B.tolist() == [answers[place] for answers, place in pairs]


def test_training_samples_depend_on_the_seed_and_on_nothing_else():
    bias = toy.bias_vector(PROBLEM)
    one, same = (toy.training_samples(PROBLEM, bias, seed=1, updates=3, batch=4) for _ in "ab")
    two = toy.training_samples(PROBLEM, bias, seed=2, updates=3, batch=4)
    assert all(map(torch.equal, one, same))
    assert not torch.equal(one.keys_BND, two.keys_BND)


@pytest.mark.parametrize("form", ["minimal", "full"])
def test_rows_of_a_seed_start_from_the_same_weights(form):
    def weights(row: str, seed: int) -> dict[str, torch.Tensor]:
        generator = torch_generator("quest", f"toy-init-{form}", seed)
        model = toy_models.build(form, row, PROBLEM, CONFIG, generator)
        return {name: v for name, v in model.state_dict().items() if "scales" not in name}

    first = weights("standard", 0)
    for row in ROWS:
        own = weights(row, 0)
        assert list(own) == list(first)
        assert all(torch.equal(own[name], first[name]) for name in first)
    assert any(not torch.equal(value, first[name]) for name, value in weights("quest", 1).items())


def test_the_layer_is_the_mean_over_tokens_of_attention_times_answers():
    model = toy_models.Minimal("quest", PROBLEM, torch.Generator().manual_seed(0))
    samples = draw(2, 0.5)
    output = model(samples.keys_BND, samples.answers_BN)
    for b in range(2):
        x = samples.keys_BND[b].numpy().astype(float)
        k = x @ model.key.detach().numpy().T.astype(float)
        scores = x @ (k / np.linalg.norm(k, axis=1, keepdims=True)).T
        attention = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        one_hot = np.eye(10)[samples.answers_BN[b].numpy()]
        expected = (attention @ one_hot).mean(0)
        found = output.log_probabilities_BC[b].exp().detach().numpy()
        assert found == pytest.approx(expected, abs=1e-6)
        assert output.attention_BN[b].numpy() == pytest.approx(attention.mean(0), abs=1e-6)
    assert float(output.max_logit) > 0


@pytest.mark.parametrize("row", ROWS)
def test_the_network_gives_probabilities_and_trains_every_weight(row):
    model = toy_models.Full(row, PROBLEM, CONFIG, torch.Generator().manual_seed(0))
    samples = draw(16, 0.5)
    output = model(samples.keys_BND, samples.answers_BN)
    torch.testing.assert_close(output.log_probabilities_BC.exp().sum(1), torch.ones(16))
    assert output.key_norm_BN.shape == output.attention_BN.shape == (16, 12)
    # the most of 2 layers and 2 heads, which each share out 1, some of it to the class token
    assert (output.attention_BN > 0).all() and (output.attention_BN.sum(1) < 4).all()
    output.log_probabilities_BC.gather(1, samples.target_B[:, None]).sum().backward()
    still = [name for name, value in model.named_parameters() if not value.grad.abs().max() > 0]
    assert still == []


def test_order_of_tokens_does_not_matter():
    samples = draw(4, 0.5)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    for form in ("minimal", "full"):
        model = toy_models.build(form, "quest", PROBLEM, CONFIG, torch.Generator().manual_seed(0))
        one = model(samples.keys_BND, samples.answers_BN).log_probabilities_BC
        other = model(samples.keys_BND[:, order], samples.answers_BN[:, order])
        torch.testing.assert_close(one, other.log_probabilities_BC, rtol=1e-4, atol=1e-5)


def test_fixed_queries_with_unit_keys_cannot_see_a_tokens_spread():
    """Why the layer's queries are tokens: unit keys are the same however long a token is."""
    from kernels.quest.reference import unit_keys

    x, weight = draw(5, 0.0).keys_BND, torch.randn(8, 8)
    torch.testing.assert_close(unit_keys(3 * x @ weight), unit_keys(x @ weight))


def test_the_key_norm_ratio_is_of_biased_samples_only():
    samples = toy.Samples(
        torch.zeros(2, 3, 8),
        torch.zeros(2, 3, dtype=torch.int64),
        torch.tensor([1, 0]),
        torch.tensor([True, False]),
    )
    norms = torch.tensor([[[1.0, 6.0, 2.0], [9.0, 1.0, 1.0]]])
    assert toy_train.key_norm_ratio(norms, samples).tolist() == [4.0]


def test_a_broken_data_file_is_named(tmp_path):
    write_json(tmp_path / "toy.json", {"problem": PROBLEM.model_dump()})
    (tmp_path / "toy.safetensors").write_bytes(b"no")
    with pytest.raises(InputError, match="toy.safetensors: not the toy's data"):
        toy.load(tmp_path / "toy.json")
