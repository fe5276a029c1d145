# SPDX-License-Identifier: Apache-2.0
"""Models that are built without memory and filled by their first planned step."""

import io
import os

import pytest
import stowage
import torch

transformers = pytest.importorskip("transformers")
transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def small(**options):
    return dict(num_hidden_layers=2, hidden_size=32, intermediate_size=64, num_attention_heads=4,
                vocab_size=64, max_position_embeddings=64, **options)


CONFIGS = {
    "gpt2": lambda: transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=64,
                                            n_positions=64),
    "llama": lambda: transformers.LlamaConfig(**small(num_key_value_heads=2)),
    "tied": lambda: transformers.LlamaConfig(**small(num_key_value_heads=2),
                                             tie_word_embeddings=True),
    "bert": lambda: transformers.BertConfig(**small(is_decoder=True)),
}
BATCHES = [torch.randint(2, 60, (2, 8), generator=torch.Generator().manual_seed(i))
           for i in range(4)]


def build(name, **options):
    return transformers.AutoModelForCausalLM.from_config(CONFIGS[name](), **options)


def without_memory(name, **options):
    with stowage.without_memory():
        return build(name, **options)


class Training:
    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def step(self, x):
        loss = self.model(input_ids=x, labels=x).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss

    def planned(self):
        return stowage.step(self.model, self.optimizer, budget="90%peak", device="cpu")(self.step)


def losses_of(step, batches=BATCHES):
    return [step(x).item() for x in batches]


def assert_same_model(a, b):
    named = [{**dict(one.named_parameters()), **dict(one.named_buffers())} for one in (a, b)]
    assert list(named[0]) == list(named[1])
    for key, value in named[0].items():
        assert value.dtype == named[1][key].dtype and torch.equal(value, named[1][key]), key


@pytest.mark.parametrize("options", [{}, {"dtype": torch.bfloat16}], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("name", CONFIGS)
def test_replayed_construction_is_bit_equal(name, options):
    torch.manual_seed(3)
    plain = Training(build(name, **options))
    wanted = losses_of(plain.step)
    torch.manual_seed(3)  # and never after: dropout draws what follows the construction
    got = Training(without_memory(name, **options))
    step = got.planned()
    assert losses_of(step) == wanted
    step.leave()
    assert_same_model(got.model, plain.model)


def test_a_seed_after_the_construction_counts():
    torch.manual_seed(3)
    plain = Training(build("gpt2"))
    torch.manual_seed(11)
    wanted = losses_of(plain.step)
    torch.manual_seed(3)
    got = Training(without_memory("gpt2"))
    torch.manual_seed(11)
    assert losses_of(got.planned()) == wanted


@pytest.mark.parametrize("name", CONFIGS)
def test_filled_from_files(tmp_path, name):
    torch.manual_seed(3)
    build(name).save_pretrained(tmp_path, max_shard_size="20KB")
    assert len([one for one in os.listdir(tmp_path) if one.endswith(".safetensors")]) > 1
    plain = Training(transformers.AutoModelForCausalLM.from_pretrained(tmp_path).train())
    torch.manual_seed(5)
    wanted = losses_of(plain.step)
    got = Training(stowage.load_pretrained(without_memory(name), tmp_path))
    torch.manual_seed(5)
    step = got.planned()
    assert losses_of(step) == wanted
    with step.live() as model:
        assert_same_model(model, plain.model)
    step.leave()
    assert_same_model(got.model, plain.model)


def test_from_pretrained_inside(tmp_path):
    torch.manual_seed(3)
    build("tied").save_pretrained(tmp_path)
    plain = Training(transformers.AutoModelForCausalLM.from_pretrained(tmp_path).train())
    wanted = losses_of(plain.step)
    with stowage.without_memory():
        model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).train()
    got = Training(model)
    step = got.planned()
    assert losses_of(step) == wanted
    step.leave()
    assert_same_model(got.model, plain.model)


def test_save_pretrained_while_planned(tmp_path):
    torch.manual_seed(3)
    got = Training(without_memory("tied"))
    step = got.planned()
    losses_of(step, BATCHES[:2])
    got.model.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    losses_of(step, BATCHES[2:3])
    torch.save(got.model.state_dict(), io.BytesIO())
    torch.manual_seed(3)
    plain = Training(build("tied"))
    losses_of(plain.step, BATCHES[:2])
    assert_same_model(loaded, plain.model)


def test_resume_of_a_model_without_memory(tmp_path):
    torch.manual_seed(3)
    plain = Training(build("gpt2"))
    wanted = losses_of(plain.step)
    torch.manual_seed(3)
    first = Training(without_memory("gpt2"))
    step = first.planned()
    found = losses_of(step, BATCHES[:2])
    step.save(tmp_path / "checkpoint")
    torch.manual_seed(8)
    second = Training(without_memory("gpt2"))
    step = second.planned()
    step.load(tmp_path / "checkpoint")
    found += losses_of(step, BATCHES[2:])
    step.leave()
    assert found == wanted
    assert_same_model(second.model, plain.model)


def test_what_does_not_fit_is_refused(tmp_path):
    build("llama").save_pretrained(tmp_path)
    with pytest.raises(stowage.InvalidArgument, match="F32, the model has torch.bfloat16"):
        stowage.load_pretrained(without_memory("llama", dtype=torch.bfloat16), tmp_path)
    with pytest.raises(stowage.InvalidArgument, match="has memory"):
        stowage.load_pretrained(build("llama"), tmp_path)
    with pytest.raises(stowage.InvalidArgument, match="is missing"):
        stowage.load_pretrained(without_memory("gpt2"), tmp_path)
    with pytest.raises(stowage.FileError, match="no folder"):
        stowage.load_pretrained(without_memory("llama"), tmp_path / "none")
    with (pytest.raises(stowage.InvalidArgument, match="does not nest"),
          stowage.without_memory(), stowage.without_memory()):
        pass
    assert torch.ones(2).sum().item() == 2  # the scope ended


def test_files_of_a_part_of_the_model_are_refused(tmp_path):
    """Names differ in a model that wraps it (peft's), so nothing would be read."""
    build("gpt2").save_pretrained(tmp_path)
    base = stowage.load_pretrained(without_memory("gpt2"), tmp_path)
    wrapped = torch.nn.Sequential(base)
    optimizer = torch.optim.AdamW(wrapped.parameters())

    @stowage.step(wrapped, optimizer, budget="4MiB", device="cpu")
    def train_step(ids):
        loss = base(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        return loss

    with pytest.raises(stowage.Unsupported, match="a part of the planned model"):
        train_step(torch.zeros(1, 8, dtype=torch.long))


def test_drawing_after_the_scope_is_warned_of():
    with stowage.without_memory():
        model = torch.nn.Linear(4, 4)
    torch.randn(3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    @stowage.step(model, optimizer, budget="200%peak", device="cpu")
    def train_step(x):
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    with pytest.warns(UserWarning, match="drawn after a model was built without memory"):
        train_step(torch.ones(2, 4))
