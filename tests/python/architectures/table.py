# SPDX-License-Identifier: Apache-2.0
"""Tiny configurations of Hugging Face's architectures: name -> a function that makes a Case.

Models are made from their own configuration classes, with dropout where these have it. Batches hold
what the documentation of a class trains it with: masks with padding, labels with -100 there.
"""

import dataclasses

import torch
import transformers as hf

VOCABULARY = 96
WIDTH = 32
ROWS = 2
LENGTH = 16

TABLE = {}


@dataclasses.dataclass
class Case:
    """A model, and `batch(generator)`: keyword arguments of one step, other numbers each time."""

    model: torch.nn.Module
    batch: object


def architecture(function):
    """Notes a function of the table under its name."""
    TABLE[function.__name__.strip("_")] = function
    return function


def numbers(generator, *shape):
    return torch.randn(*shape, generator=generator)


def tokens(generator, *shape, low=4, high=VOCABULARY):
    return torch.randint(low, high, shape, generator=generator)


def mask_of(generator, rows=ROWS, length=LENGTH):
    """The first row is whole, the others are padded on the right: another length in each step."""
    mask = torch.ones(rows, length, dtype=torch.long)
    for row in range(1, rows):
        mask[row, int(tokens(generator, 1, low=length // 2, high=length * 3 // 4)):] = 0
    return mask


def text_batch(generator, rows=ROWS, length=LENGTH, pad=0):
    """input_ids and attention_mask."""
    mask = mask_of(generator, rows, length)
    return {"input_ids": tokens(generator, rows, length).masked_fill(mask == 0, pad),
            "attention_mask": mask}


def language_batch(generator):
    """For a causal model: the labels are the tokens, -100 where padded."""
    batch = text_batch(generator)
    batch["labels"] = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    return batch


def masked_batch(generator):
    """For a masked model: every third token is hidden, and asked for."""
    batch = text_batch(generator)
    hidden = tokens(generator, ROWS, LENGTH, low=0, high=3) == 0
    hidden &= batch["attention_mask"] == 1
    hidden[:, 0] = True
    batch["labels"] = batch["input_ids"].masked_fill(~hidden, -100)
    batch["input_ids"] = batch["input_ids"].masked_fill(hidden, 3)
    return batch


def class_batch(generator):
    """For a model that sorts texts into three classes."""
    return {**text_batch(generator), "labels": tokens(generator, ROWS, low=0, high=3)}


def pair_batch(generator):
    """For an encoder and a decoder."""
    batch = text_batch(generator)
    mask = mask_of(generator)
    batch["labels"] = tokens(generator, ROWS, LENGTH).masked_fill(mask == 0, -100)
    return batch


def image_batch(size=32, classes=3, channels=3, rows=ROWS):
    def batch(generator):
        return {"pixel_values": numbers(generator, rows, channels, size, size),
                "labels": tokens(generator, rows, low=0, high=classes)}

    return batch


# --- causal language models -----------------------------------------------------------------------

_MODERN = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}
_HEAD = {"head_dim": 8}
_DROP = {"attention_dropout": 0.1}


def _causal(name, config, *options, **more):
    """A row for a causal language model of the configuration class `config`."""
    settings = dict(_MODERN)
    for option in (*options, more):
        settings.update(option)
    settings = {key: value for key, value in settings.items() if value is not None}

    def make():
        made = getattr(hf, config)(**settings)
        return Case(hf.AutoModelForCausalLM.from_config(made), language_batch)

    TABLE[name] = make


_causal("llama", "LlamaConfig", _DROP)
_causal("mistral", "MistralConfig", _DROP, sliding_window=8)
_causal("qwen2", "Qwen2Config", _DROP)
_causal("qwen3", "Qwen3Config", _DROP, _HEAD)
_causal("gemma", "GemmaConfig", _DROP, _HEAD)
_causal("gemma2", "Gemma2Config", _DROP, _HEAD, sliding_window=8)
_causal("gemma3_text", "Gemma3TextConfig", _DROP, _HEAD, sliding_window=8)
_causal("phi", "PhiConfig", _DROP, resid_pdrop=0.1, embd_pdrop=0.1)
_causal("phi3", "Phi3Config", _DROP, resid_pdrop=0.1, embd_pdrop=0.1)
_causal("olmo2", "Olmo2Config", _DROP)
_causal("cohere", "CohereConfig", _DROP)
_causal("stablelm", "StableLmConfig", _DROP, hidden_dropout=0.1)
_causal("starcoder2", "Starcoder2Config", _DROP, residual_dropout=0.1, embedding_dropout=0.1)
_causal("glm4", "Glm4Config", _DROP, _HEAD)
_causal("granite", "GraniteConfig", _DROP)
_causal("smollm3", "SmolLM3Config", _DROP)
_causal("nemotron", "NemotronConfig", _DROP)
_causal("exaone4", "Exaone4Config", _DROP, sliding_window=8)
_causal("persimmon", "PersimmonConfig", _DROP, hidden_dropout=0.1)
_causal("gpt_neox", "GPTNeoXConfig", _DROP, hidden_dropout=0.1)
_causal("helium", "HeliumConfig", _DROP, _HEAD)
_causal("ernie4_5", "Ernie4_5Config", _HEAD)
_causal("apertus", "ApertusConfig", _DROP)

_OLD = {"vocab_size": VOCABULARY, "n_positions": 64, "n_embd": WIDTH, "n_layer": 2, "n_head": 4,
        "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "n_inner": 64}
_NONE = dict.fromkeys(_MODERN)

_causal("gpt2", "GPT2Config", _NONE, _OLD)
_causal("gptj", "GPTJConfig", _NONE, _OLD, rotary_dim=4, resid_pdrop=0.1, attn_pdrop=0.1)
_causal("codegen", "CodeGenConfig", _NONE, _OLD, rotary_dim=4, resid_pdrop=0.1, attn_pdrop=0.1)
_causal("gpt_bigcode", "GPTBigCodeConfig", _NONE, _OLD)
_causal("gpt_neo", "GPTNeoConfig", _NONE, vocab_size=VOCABULARY, hidden_size=WIDTH, num_layers=2,
        num_heads=4, attention_types=[[["global", "local"], 1]], window_size=8,
        max_position_embeddings=64, resid_dropout=0.1, attention_dropout=0.1, embed_dropout=0.1,
        bos_token_id=1, eos_token_id=2)
_causal("opt", "OPTConfig", _NONE, vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2,
        ffn_dim=64, num_attention_heads=4, max_position_embeddings=64, word_embed_proj_dim=WIDTH,
        dropout=0.1, attention_dropout=0.1, pad_token_id=0, bos_token_id=1, eos_token_id=2)
_causal("bloom", "BloomConfig", _NONE, vocab_size=VOCABULARY, hidden_size=WIDTH, n_layer=2,
        n_head=4,
        hidden_dropout=0.1, attention_dropout=0.1, pad_token_id=0)
_causal("falcon", "FalconConfig", _NONE, vocab_size=VOCABULARY, hidden_size=WIDTH,
        num_hidden_layers=2, num_attention_heads=4, hidden_dropout=0.1, attention_dropout=0.1)
_causal("mpt", "MptConfig", _NONE, vocab_size=VOCABULARY, d_model=WIDTH, n_heads=4, n_layers=2,
        max_seq_len=64, emb_pdrop=0.1, resid_pdrop=0.1)
_causal("xglm", "XGLMConfig", _NONE, vocab_size=VOCABULARY, d_model=WIDTH, ffn_dim=64, num_layers=2,
        attention_heads=4, max_position_embeddings=64, dropout=0.1, layerdrop=0.0,
        pad_token_id=0)
_causal("ctrl", "CTRLConfig", _NONE, vocab_size=VOCABULARY, n_positions=64, n_embd=WIDTH, dff=64,
        n_layer=2, n_head=4, pad_token_id=0)
_causal("openai_gpt", "OpenAIGPTConfig", _NONE, vocab_size=VOCABULARY, n_positions=64, n_embd=WIDTH,
        n_layer=2, n_head=4)

# --- mixtures of experts --------------------------------------------------------------------------

_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}

_causal("mixtral", "MixtralConfig", _DROP, num_local_experts=4, num_experts_per_tok=2,
        output_router_logits=True)
_causal("qwen2_moe", "Qwen2MoeConfig", _DROP, _EXPERTS, shared_expert_intermediate_size=32,
        output_router_logits=True)
_causal("qwen3_moe", "Qwen3MoeConfig", _DROP, _EXPERTS, _HEAD, output_router_logits=True)
_causal("olmoe", "OlmoeConfig", _DROP, num_experts=4, num_experts_per_tok=2)
_causal("granitemoe", "GraniteMoeConfig", _DROP, num_local_experts=4, num_experts_per_tok=2)
_causal("phimoe", "PhimoeConfig", _DROP, num_local_experts=4, num_experts_per_tok=2)
_causal("gpt_oss", "GptOssConfig", _DROP, _HEAD, num_local_experts=4, num_experts_per_tok=2,
        sliding_window=8)
_causal("deepseek_v3", "DeepseekV3Config", _DROP, num_key_value_heads=4, n_routed_experts=4,
        num_experts_per_tok=2, n_group=2, topk_group=1, moe_intermediate_size=32, kv_lora_rank=16,
        q_lora_rank=16, qk_rope_head_dim=8, v_head_dim=8, qk_nope_head_dim=8, n_shared_experts=1,
        first_k_dense_replace=1)
_causal("glm4_moe", "Glm4MoeConfig", _DROP, _HEAD, n_routed_experts=4, num_experts_per_tok=2,
        moe_intermediate_size=32, n_group=1, topk_group=1, first_k_dense_replace=1)
_causal("jetmoe", "JetMoeConfig", num_key_value_heads=2, kv_channels=8, num_local_experts=4,
        num_experts_per_tok=2, num_attention_heads=None)
_causal("dbrx", "DbrxConfig", _NONE, vocab_size=VOCABULARY, d_model=WIDTH, n_heads=4, n_layers=2,
        max_seq_len=64, resid_pdrop=0.1,
        attn_config={"kv_n_heads": 2, "clip_qkv": 8.0, "attn_pdrop": 0.1, "rope_theta": 1e4},
        ffn_config={"ffn_hidden_size": 64, "moe_num_experts": 4, "moe_top_k": 2})

# --- state space and other recurrence -------------------------------------------------------------

_STATE = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "num_hidden_layers": 2, "state_size": 8,
          "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

_causal("mamba", "MambaConfig", _NONE, _STATE, time_step_rank=4)
_causal("falcon_mamba", "FalconMambaConfig", _NONE, _STATE, time_step_rank=4)
_causal("mamba2", "Mamba2Config", _NONE, _STATE, num_heads=8, head_dim=8, n_groups=2, chunk_size=8)
_causal("rwkv", "RwkvConfig", _NONE, vocab_size=VOCABULARY, hidden_size=WIDTH, num_hidden_layers=2,
        context_length=32, bos_token_id=1, eos_token_id=2)
_causal("recurrent_gemma", "RecurrentGemmaConfig", num_hidden_layers=3, lru_width=WIDTH,
        attention_window_size=8, attention_dropout=0.1)
_causal("jamba", "JambaConfig", _DROP, num_experts=2, num_experts_per_tok=1, attn_layer_period=2,
        attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, mamba_d_state=8,
        mamba_dt_rank=4, use_mamba_kernels=False)
_causal("bamba", "BambaConfig", _DROP, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=8,
        mamba_d_state=8, mamba_n_groups=1, mamba_chunk_size=8)
_causal("zamba", "ZambaConfig", _DROP, num_hidden_layers=4, mamba_d_state=8, mamba_dt_rank=4,
        n_mamba_heads=2, num_key_value_heads=4, use_mamba_kernels=False,
        layers_block_type=["mamba", "hybrid", "mamba", "hybrid"])
_causal("falcon_h1", "FalconH1Config", _HEAD, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8,
        mamba_d_state=8, mamba_n_groups=1, mamba_chunk_size=8)
_causal("qwen3_next", "Qwen3NextConfig", _DROP, _HEAD, _EXPERTS, linear_num_value_heads=4,
        linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
        shared_expert_intermediate_size=32, layer_types=["linear_attention", "full_attention"])
_causal("lfm2", "Lfm2Config", layer_types=["conv", "full_attention"], block_ff_dim=64)

# --- encoders of text -----------------------------------------------------------------------------

_ENCODER = {
    "vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0, "num_labels": 3,
}


def _encoder(name, config, model="MaskedLM", plain=True, **more):
    """A row for AutoModelFor<model>; MaskedLM has hidden tokens, others have classes."""
    settings = {**_ENCODER, **more} if plain else more

    def make():
        made = getattr(hf, config)(**settings)
        auto = getattr(hf, f"AutoModelFor{model}")
        return Case(auto.from_config(made), masked_batch if model == "MaskedLM" else class_batch)

    TABLE[name] = make


_encoder("bert", "BertConfig")
_encoder("bert_classes", "BertConfig", "SequenceClassification")
_encoder("roberta", "RobertaConfig")
_encoder("albert", "AlbertConfig", embedding_size=16, hidden_dropout_prob=0.1,
         attention_probs_dropout_prob=0.1)
_encoder("electra", "ElectraConfig", embedding_size=16)
_encoder("deberta", "DebertaConfig", relative_attention=True, pos_att_type=["c2p", "p2c"])
_encoder("deberta_v2", "DebertaV2Config", relative_attention=True, pos_att_type=["c2p", "p2c"],
         position_buckets=8, share_att_key=True)
_encoder("mpnet", "MPNetConfig")
_encoder("roformer", "RoFormerConfig")
_encoder("convbert", "ConvBertConfig", embedding_size=WIDTH, head_ratio=2, num_groups=1,
         conv_kernel_size=3)
_encoder("mobilebert", "MobileBertConfig", embedding_size=16, true_hidden_size=16,
         intra_bottleneck_size=16, num_feedforward_networks=2)
_encoder("squeezebert", "SqueezeBertConfig", embedding_size=WIDTH, q_groups=2, k_groups=2,
         v_groups=2, post_attention_groups=1, intermediate_groups=2, output_groups=2)
_encoder("modernbert", "ModernBertConfig", attention_dropout=0.1, mlp_dropout=0.1,
         embedding_dropout=0.1, local_attention=8, bos_token_id=1, eos_token_id=2, cls_token_id=1,
         sep_token_id=2)
_encoder("esm", "EsmConfig", position_embedding_type="rotary", mask_token_id=3, token_dropout=True)
_encoder("big_bird", "BigBirdConfig", attention_type="original_full")
_encoder("longformer", "LongformerConfig", attention_window=[4, 4], max_position_embeddings=80)
_encoder("distilbert", "DistilBertConfig", plain=False, vocab_size=VOCABULARY, dim=WIDTH,
         hidden_dim=64, n_layers=2, n_heads=4, max_position_embeddings=64)
_encoder("xlm", "XLMConfig", "SequenceClassification", plain=False, vocab_size=VOCABULARY,
         emb_dim=WIDTH, n_layers=2, n_heads=4, max_position_embeddings=64, num_labels=3,
         pad_index=0)
_encoder("xlnet", "XLNetConfig", "SequenceClassification", plain=False, vocab_size=VOCABULARY,
         d_model=WIDTH, n_layer=2, n_head=4, d_inner=64, num_labels=3, pad_token_id=0)
_encoder("funnel", "FunnelConfig", plain=False, vocab_size=VOCABULARY, block_sizes=[1, 1],
         d_model=WIDTH, n_head=4, d_head=8, d_inner=64, num_decoder_layers=1)
_encoder("llama_classes", "LlamaConfig", "SequenceClassification", plain=False, **_MODERN,
         num_labels=3)


@architecture
def fnet():
    def batch(generator):
        made = masked_batch(generator)
        del made["attention_mask"]
        return made

    return Case(hf.FNetForMaskedLM(hf.FNetConfig(**_ENCODER)), batch)


@architecture
def layoutlm():
    def batch(generator):
        made = masked_batch(generator)
        left = tokens(generator, ROWS, LENGTH, 2, low=0, high=30)
        made["bbox"] = torch.cat([left, left + 10], dim=2)
        return made

    config = hf.LayoutLMConfig(**_ENCODER, max_2d_position_embeddings=64)
    return Case(hf.LayoutLMForMaskedLM(config), batch)


@architecture
def bert_questions():
    def batch(generator):
        return {**text_batch(generator), "start_positions": tokens(generator, ROWS, low=0, high=8),
                "end_positions": tokens(generator, ROWS, low=0, high=8)}

    return Case(hf.BertForQuestionAnswering(hf.BertConfig(**{**_ENCODER, "num_labels": 2})), batch)


# --- encoder and decoder --------------------------------------------------------------------------


def _pair(name, config, **settings):
    def make():
        made = getattr(hf, config)(**settings)
        return Case(hf.AutoModelForSeq2SeqLM.from_config(made), pair_batch)

    TABLE[name] = make


_T5 = {"vocab_size": VOCABULARY, "d_model": WIDTH, "d_kv": 8, "d_ff": 64, "num_layers": 2,
       "num_decoder_layers": 2, "num_heads": 4, "dropout_rate": 0.1, "decoder_start_token_id": 0,
       "pad_token_id": 0, "eos_token_id": 1, "relative_attention_num_buckets": 8}
_BART = {"vocab_size": VOCABULARY, "d_model": WIDTH, "encoder_layers": 2, "decoder_layers": 2,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
         "decoder_ffn_dim": 64, "max_position_embeddings": 64, "dropout": 0.1,
         "attention_dropout": 0.1, "activation_dropout": 0.1, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2}

_pair("t5", "T5Config", **_T5)
_pair("mt5", "MT5Config", **_T5, feed_forward_proj="gated-gelu")
_pair("umt5", "UMT5Config", **_T5)
_pair("longt5", "LongT5Config", **_T5, local_radius=4, encoder_attention_type="local")
_pair("switch_transformers", "SwitchTransformersConfig", **_T5, num_sparse_encoder_layers=1,
      num_sparse_decoder_layers=1, num_experts=4, expert_capacity=8)
_pair("bart", "BartConfig", **_BART)
_pair("mbart", "MBartConfig", **_BART)
_pair("pegasus", "PegasusConfig", **_BART)
_pair("marian", "MarianConfig", **_BART)
_pair("blenderbot", "BlenderbotConfig", **_BART)
_pair("m2m_100", "M2M100Config", **_BART, encoder_layerdrop=0.0, decoder_layerdrop=0.0)
_pair("plbart", "PLBartConfig", **_BART)
_pair("led", "LEDConfig", **{**_BART, "max_position_embeddings": 64},
      max_encoder_position_embeddings=64, max_decoder_position_embeddings=64, attention_window=4)
_pair("nllb_moe", "NllbMoeConfig", **_BART, num_experts=4, expert_capacity=8, encoder_sparse_step=2,
      decoder_sparse_step=2, encoder_layerdrop=0.0, decoder_layerdrop=0.0)
_pair("prophetnet", "ProphetNetConfig", vocab_size=VOCABULARY, hidden_size=WIDTH,
      encoder_ffn_dim=64, num_encoder_layers=2, num_encoder_attention_heads=4, decoder_ffn_dim=64,
      num_decoder_layers=2, num_decoder_attention_heads=4, max_position_embeddings=64,
      pad_token_id=0, ngram=2, num_buckets=8, relative_max_distance=16)
