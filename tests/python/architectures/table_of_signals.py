# SPDX-License-Identifier: Apache-2.0
"""More of the table: images, sound, time series, and several of these with text."""

import torch
import transformers as hf

from .table import (
    LENGTH,
    ROWS,
    TABLE,
    VOCABULARY,
    WIDTH,
    Case,
    architecture,
    image_batch,
    mask_of,
    numbers,
    text_batch,
    tokens,
)

_TEXT = {"vocab_size": VOCABULARY, "hidden_size": WIDTH, "intermediate_size": 64,
         "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
_LLAMA = {**_TEXT, "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1,
          "eos_token_id": 2}
_IMAGES = {"image_size": 32, "patch_size": 8, "num_channels": 3, "hidden_size": WIDTH,
           "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}

# --- images ---------------------------------------------------------------------------------------


def _images(name, config, size=32, model=None, **settings):
    """A row for a model that sorts images into three classes; `model` where no Auto class knows."""

    def make():
        made = getattr(hf, config)(**settings, num_labels=3)
        kind = model and getattr(hf, model)
        return Case(kind(made) if kind else hf.AutoModelForImageClassification.from_config(made),
                    image_batch(size))

    TABLE[name] = make


_VIT = {**_IMAGES, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}

_images("vit", "ViTConfig", **_VIT)
_images("deit", "DeiTConfig", model="DeiTForImageClassification", **_VIT)
_images("beit", "BeitConfig", **_VIT, drop_path_rate=0.1)
_images("dinov2", "Dinov2Config", **_VIT, drop_path_rate=0.1)
_images("resnet", "ResNetConfig", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1],
        layer_type="basic")
_images("regnet", "RegNetConfig", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1],
        groups_width=8)
_images("convnext", "ConvNextConfig", 64, hidden_sizes=[8, 16], depths=[3, 3], num_stages=2,
        drop_path_rate=0.1)
_images("convnextv2", "ConvNextV2Config", 64, hidden_sizes=[8, 16], depths=[3, 3], num_stages=2,
        drop_path_rate=0.1)
_images("swin", "SwinConfig", image_size=32, patch_size=4, embed_dim=16, depths=[2, 2],
        num_heads=[2, 4], window_size=4, drop_path_rate=0.1, hidden_dropout_prob=0.1)
_images("swinv2", "Swinv2Config", image_size=32, patch_size=4, embed_dim=16, depths=[2, 2],
        num_heads=[2, 4], window_size=4, drop_path_rate=0.1)
_images("focalnet", "FocalNetConfig", image_size=32, patch_size=4, embed_dim=16, depths=[1, 1],
        hidden_sizes=[16, 32], focal_levels=[1, 1], focal_windows=[3, 3])
_images("segformer", "SegformerConfig", num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1],
        hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[2, 2],
        mlp_ratios=[2, 2], decoder_hidden_size=16)
_images("pvt", "PvtConfig", image_size=32, num_encoder_blocks=2, depths=[1, 1],
        sequence_reduction_ratios=[2, 1], hidden_sizes=[16, 32], patch_sizes=[4, 2],
        strides=[4, 2], num_attention_heads=[2, 2], mlp_ratios=[2, 2])
_images("poolformer", "PoolFormerConfig", depths=[1, 1], hidden_sizes=[16, 32], patch_sizes=[7, 3],
        strides=[4, 2], padding=[2, 1], num_encoder_blocks=2)
_images("mobilenet_v1", "MobileNetV1Config", depth_multiplier=0.25, image_size=32)
_images("mobilenet_v2", "MobileNetV2Config", depth_multiplier=0.25, image_size=32)
_images("mobilevit", "MobileViTConfig", image_size=32, hidden_sizes=[16, 16, 16],
        neck_hidden_sizes=[8, 8, 8, 8, 8, 8, 16], num_attention_heads=2)
_images("efficientnet", "EfficientNetConfig", 64, image_size=64, width_coefficient=0.25,
        depth_coefficient=0.25, hidden_dim=320, in_channels=[32, 16], out_channels=[16, 24],
        kernel_sizes=[3, 3], strides=[1, 2], num_block_repeats=[1, 1], expand_ratios=[1, 2],
        depthwise_padding=[], dropout_rate=0.1)
_images("levit", "LevitConfig", 64, "LevitForImageClassification", image_size=64,
        hidden_sizes=[16, 32, 48],
        num_attention_heads=[2, 2, 2], depths=[1, 1, 1], key_dim=[8, 8, 8], patch_size=16,
        attention_ratio=[2, 2, 2], mlp_ratio=[2, 2, 2],
        down_ops=[["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 4, 4, 2, 2]])
_images("cvt", "CvtConfig", embed_dim=[16, 32], num_heads=[2, 2], depth=[1, 2],
        patch_sizes=[7, 3], patch_stride=[4, 2], patch_padding=[2, 1], mlp_ratio=[2.0, 2.0],
        attention_drop_rate=[0.1, 0.1], drop_rate=[0.1, 0.1], drop_path_rate=[0.0, 0.0],
        qkv_bias=[True, True], cls_token=[False, True], qkv_projection_method=["dw_bn", "dw_bn"],
        kernel_qkv=[3, 3], padding_kv=[1, 1], stride_kv=[2, 2], padding_q=[1, 1], stride_q=[1, 1])
_images("siglip_images", "SiglipConfig", vision_config={**_IMAGES, "attention_dropout": 0.1})


@architecture
def vit_mae():
    """The patches that it hides are drawn inside of the model."""

    def batch(generator):
        return {"pixel_values": numbers(generator, ROWS, 3, 32, 32)}

    config = hf.ViTMAEConfig(**_VIT, decoder_hidden_size=16, decoder_num_hidden_layers=1,
                             decoder_num_attention_heads=2, decoder_intermediate_size=32)
    return Case(hf.ViTMAEForPreTraining(config), batch)


def _segmentation(generator):
    return {"pixel_values": numbers(generator, ROWS, 3, 32, 32),
            "labels": tokens(generator, ROWS, 32, 32, low=0, high=3)}


@architecture
def segformer_pixels():
    config = hf.SegformerConfig(
        num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32],
        patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[2, 2], mlp_ratios=[2, 2],
        decoder_hidden_size=16, num_labels=3)
    return Case(hf.SegformerForSemanticSegmentation(config), _segmentation)


@architecture
def dpt():
    config = hf.DPTConfig(**{**_VIT, "num_hidden_layers": 4}, backbone_out_indices=[0, 1, 2, 3],
                          reassemble_factors=[4, 2, 1, 0.5], neck_hidden_sizes=[8, 8, 8, 8],
                          fusion_hidden_size=8, num_labels=3, is_hybrid=False)
    return Case(hf.DPTForSemanticSegmentation(config), _segmentation)


# --- sound ----------------------------------------------------------------------------------------

_WAVES = {
    "vocab_size": 24, "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 64, "conv_dim": [16, 16], "conv_stride": [5, 4], "conv_kernel": [10, 4],
    "num_feat_extract_layers": 2, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2,
    "mask_time_length": 2, "mask_feature_length": 2, "ctc_loss_reduction": "mean",
    "pad_token_id": 0,
    "hidden_dropout": 0.1, "attention_dropout": 0.1, "feat_proj_dropout": 0.1,
}


def _speech(generator):
    """Waves and their letters, for CTC."""
    return {"input_values": numbers(generator, ROWS, 640),
            "labels": tokens(generator, ROWS, 6, low=1, high=24)}


def _ctc(name, config, batch=_speech, **more):
    def make():
        made = getattr(hf, config)(**{**_WAVES, **more})
        return Case(hf.AutoModelForCTC.from_config(made), batch)

    TABLE[name] = make


def _padded_speech(generator):
    batch = _speech(generator)
    mask = torch.ones(ROWS, 640, dtype=torch.long)
    mask[1, int(tokens(generator, 1, low=400, high=640)):] = 0
    batch["labels"][1, 4:] = -100
    return {**batch, "attention_mask": mask}


_ctc("wav2vec2", "Wav2Vec2Config", layerdrop=0.0, mask_time_prob=0.0)
_ctc("wav2vec2_masks", "Wav2Vec2Config", _padded_speech, layerdrop=0.1, mask_time_prob=0.2)
_ctc("hubert", "HubertConfig", layerdrop=0.0, mask_time_prob=0.0)
_ctc("wavlm", "WavLMConfig", layerdrop=0.0, mask_time_prob=0.0, num_buckets=16,
     max_bucket_distance=32)
_ctc("unispeech", "UniSpeechConfig", layerdrop=0.0, mask_time_prob=0.0)
_ctc("sew", "SEWConfig", layerdrop=0.0, mask_time_prob=0.0, squeeze_factor=2)
_ctc("data2vec_audio", "Data2VecAudioConfig", layerdrop=0.0, mask_time_prob=0.0,
     conv_pos_kernel_size=3, num_conv_pos_embeddings=2)


def _spectrogram(generator, bins, frames):
    return {"input_features": numbers(generator, ROWS, bins, frames),
            "labels": tokens(generator, ROWS, LENGTH)}


_SPOKEN = {"vocab_size": VOCABULARY, "d_model": WIDTH, "encoder_layers": 2, "decoder_layers": 2,
           "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64,
           "decoder_ffn_dim": 64, "dropout": 0.1, "attention_dropout": 0.1, "pad_token_id": 0,
           "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}


@architecture
def whisper():
    config = hf.WhisperConfig(**_SPOKEN, num_mel_bins=16, max_source_positions=16,
                              max_target_positions=32)
    return Case(hf.WhisperForConditionalGeneration(config),
                lambda generator: _spectrogram(generator, 16, 32))


@architecture
def speech_to_text():
    def batch(generator):
        made = _spectrogram(generator, 32, 16)
        return {**made, "attention_mask": mask_of(generator, ROWS, 32)}

    config = hf.Speech2TextConfig(**_SPOKEN, input_feat_per_channel=16, num_conv_layers=2,
                                  conv_channels=16, max_source_positions=64,
                                  max_target_positions=32)
    return Case(hf.Speech2TextForConditionalGeneration(config), batch)


@architecture
def moonshine():
    def batch(generator):
        return {"input_values": numbers(generator, ROWS, 2048),
                "labels": tokens(generator, ROWS, LENGTH)}

    config = hf.MoonshineConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=64, encoder_num_hidden_layers=2,
        decoder_num_hidden_layers=2, encoder_num_attention_heads=4, decoder_num_attention_heads=4,
        max_position_embeddings=64, attention_dropout=0.1, pad_token_id=0, bos_token_id=1,
        eos_token_id=2, decoder_start_token_id=1)
    return Case(hf.MoonshineForConditionalGeneration(config), batch)


@architecture
def audio_spectrogram_transformer():
    def batch(generator):
        return {"input_values": numbers(generator, ROWS, 32, 16),
                "labels": tokens(generator, ROWS, low=0, high=3)}

    config = hf.ASTConfig(hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4,
                          intermediate_size=64, patch_size=8, frequency_stride=8, time_stride=8,
                          max_length=32, num_mel_bins=16, hidden_dropout_prob=0.1, num_labels=3)
    return Case(hf.ASTForAudioClassification(config), batch)


# --- text with images or sound --------------------------------------------------------------------


def _two_towers(generator):
    return {**text_batch(generator), "pixel_values": numbers(generator, ROWS, 3, 32, 32),
            "return_loss": True}


def _towers(name, config, model, text=None):
    def make():
        options = {**_TEXT, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
                   "attention_dropout": 0.1, **(text or {})}
        made = getattr(hf, config)(text_config=options,
                                   vision_config={**_IMAGES, "attention_dropout": 0.1},
                                   projection_dim=16)
        return Case(getattr(hf, model)(made), _two_towers)

    TABLE[name] = make


_towers("clip", "CLIPConfig", "CLIPModel")
_towers("siglip", "SiglipConfig", "SiglipModel", {"max_position_embeddings": 16})
_towers("metaclip_2", "MetaClip2Config", "MetaClip2Model")
_towers("altclip", "AltCLIPConfig", "AltCLIPModel", {"project_dim": 16})
_towers("chinese_clip", "ChineseCLIPConfig", "ChineseCLIPModel")
_towers("blip", "BlipConfig", "BlipModel")


def _picture_text(token, count, pixels):
    """Text whose first `count` tokens stand for the picture; these are not trained."""

    def batch(generator):
        made = text_batch(generator)
        made["input_ids"][:, :count] = token
        made["labels"] = made["input_ids"].masked_fill(made["attention_mask"] == 0, -100)
        made["labels"][:, :count] = -100
        return {**made, **pixels(generator)}

    return batch


def _pixels(generator):
    return {"pixel_values": numbers(generator, ROWS, 3, 32, 32)}


@architecture
def llava():
    config = hf.LlavaConfig(
        text_config=hf.LlamaConfig(**_LLAMA, attention_dropout=0.1),
        vision_config=hf.CLIPVisionConfig(**{**_IMAGES, "patch_size": 16}, attention_dropout=0.1),
        image_token_id=3, vision_feature_layer=-1)
    return Case(hf.LlavaForConditionalGeneration(config), _picture_text(3, 4, _pixels))


@architecture
def paligemma():
    def batch(generator):
        made = _picture_text(3, 4, _pixels)(generator)
        made["token_type_ids"] = (made["labels"] != -100).long()
        return made

    config = hf.PaliGemmaConfig(
        text_config=hf.GemmaConfig(**_LLAMA, head_dim=8),
        vision_config=hf.SiglipVisionConfig(**{**_IMAGES, "patch_size": 16}), image_token_id=3,
        projection_dim=WIDTH, vocab_size=VOCABULARY)
    return Case(hf.PaliGemmaForConditionalGeneration(config), batch)


@architecture
def gemma3():
    def batch(generator):
        made = _picture_text(3, 4, _pixels)(generator)
        made["token_type_ids"] = (made["input_ids"] == 3).long()
        return made

    config = hf.Gemma3Config(
        text_config=hf.Gemma3TextConfig(**_LLAMA, head_dim=8, sliding_window=8),
        vision_config=hf.SiglipVisionConfig(**{**_IMAGES, "patch_size": 8}), image_token_id=3,
        mm_tokens_per_image=4)
    return Case(hf.Gemma3ForConditionalGeneration(config), batch)


@architecture
def qwen2_vl():
    def pixels(generator):
        return {"pixel_values": numbers(generator, ROWS * 16, 3 * 2 * 8 * 8),
                "image_grid_thw": torch.tensor([[1, 4, 4]] * ROWS),
                "mm_token_type_ids": (torch.arange(LENGTH) < 4).long().repeat(ROWS, 1)}

    config = hf.Qwen2VLConfig(
        text_config={**_LLAMA, "rope_parameters": {"rope_type": "default", "rope_theta": 1e4,
                                                   "mrope_section": [1, 1, 2]}},
        vision_config={"depth": 2, "embed_dim": WIDTH, "hidden_size": WIDTH, "num_heads": 4,
                       "patch_size": 8, "mlp_ratio": 2, "spatial_merge_size": 2},
        image_token_id=3, vision_start_token_id=4, vision_end_token_id=5, video_token_id=6)
    return Case(hf.Qwen2VLForConditionalGeneration(config), _picture_text(3, 4, pixels))


@architecture
def git():
    def batch(generator):
        made = text_batch(generator)
        made["labels"] = made["input_ids"].masked_fill(made["attention_mask"] == 0, -100)
        return {**made, **_pixels(generator)}

    config = hf.GitConfig(**_TEXT, vision_config={**_IMAGES}, pad_token_id=0)
    return Case(hf.GitForCausalLM(config), batch)


@architecture
def vilt():
    def batch(generator):
        return {**text_batch(generator), **_pixels(generator),
                "labels": torch.rand(ROWS, 3, generator=generator)}

    config = hf.ViltConfig(**{**_TEXT, **_VIT}, num_labels=3, max_image_length=16)
    return Case(hf.ViltForQuestionAnswering(config), batch)


@architecture
def vision_encoder_decoder():
    def batch(generator):
        return {**_pixels(generator), "labels": tokens(generator, ROWS, LENGTH)}

    config = hf.VisionEncoderDecoderConfig.from_encoder_decoder_configs(
        hf.ViTConfig(**_VIT), hf.GPT2Config(vocab_size=VOCABULARY, n_positions=64, n_embd=WIDTH,
                                            n_layer=2, n_head=4))
    config.decoder_start_token_id, config.pad_token_id = 1, 0
    return Case(hf.VisionEncoderDecoderModel(config), batch)


@architecture
def clap():
    """Short sounds; none is longer than one window, so that nothing is fused."""

    def batch(generator):
        return {**text_batch(generator, pad=1), "return_loss": True,
                "input_features": numbers(generator, ROWS, 1, 32, 16),
                "is_longer": torch.zeros(ROWS, 1, dtype=torch.bool)}

    config = hf.ClapConfig(
        text_config={**_TEXT, "pad_token_id": 1},
        audio_config={"num_mel_bins": 16, "spec_size": 32, "patch_size": 4, "patch_stride": [4, 4],
                      "patch_embeds_hidden_size": 16, "hidden_size": 32, "depths": [2, 2],
                      "num_attention_heads": [2, 2], "window_size": 4, "num_hidden_layers": 2,
                      "enable_fusion": False},
        projection_dim=16)
    return Case(hf.ClapModel(config), batch)


# --- series ---------------------------------------------------------------------------------------


@architecture
def patchtst():
    def batch(generator):
        return {"past_values": numbers(generator, ROWS, 32, 2),
                "future_values": numbers(generator, ROWS, 8, 2)}

    config = hf.PatchTSTConfig(num_input_channels=2, context_length=32, patch_length=8,
                               patch_stride=8, prediction_length=8, d_model=WIDTH, ffn_dim=64,
                               num_hidden_layers=2, num_attention_heads=4, attention_dropout=0.1)
    return Case(hf.PatchTSTForPrediction(config), batch)


@architecture
def time_series_transformer():
    def batch(generator):
        return {"past_values": numbers(generator, ROWS, 20).exp(),
                "past_time_features": numbers(generator, ROWS, 20, 1),
                "past_observed_mask": torch.ones(ROWS, 20),
                "future_values": numbers(generator, ROWS, 8).exp(),
                "future_time_features": numbers(generator, ROWS, 8, 1)}

    config = hf.TimeSeriesTransformerConfig(
        prediction_length=8, context_length=16, lags_sequence=[1, 2, 4], num_time_features=1,
        d_model=16, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32)
    return Case(hf.TimeSeriesTransformerForPrediction(config), batch)
