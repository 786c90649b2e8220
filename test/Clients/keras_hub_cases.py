"""Models and layers of keras_hub, on keras' backend of JAX, without presets."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from client import BATCH, Client, normal, numbers
from keras_cases import given, layer

# Keras is imported by then, on its backend of JAX.
import keras_hub  # isort: skip

VOCABULARY, TOKENS, IMAGE = 13, 6, 16
# Of decoders whose queries share heads of keys.
SHARED = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "num_query_heads": 4,
    "num_key_value_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 12,
}
PLAIN = {
    "vocabulary_size": VOCABULARY,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
}


def text(prefix: str = "") -> dict[str, Any]:
    """Sentences that end at different places."""
    length = numbers(2, TOKENS, BATCH, 1) + 1
    mask = (jnp.arange(TOKENS) < length).astype(jnp.int32)
    words = numbers(1, VOCABULARY, BATCH, TOKENS)
    return {f"{prefix}token_ids": words, f"{prefix}padding_mask": mask}


def segments() -> dict[str, Any]:
    return {**text(), "segment_ids": numbers(3, 2, BATCH, TOKENS)}


def pairs() -> dict[str, Any]:
    return {**text("encoder_"), **text("decoder_")}


def speech() -> dict[str, Any]:
    return {"encoder_features": normal(4, BATCH, 8, 6), **text("decoder_")}


def pictures() -> Any:
    return normal(5, BATCH, IMAGE, IMAGE, 3)


def model(name: str, inputs: Any, **options: Any) -> Client:
    case = given(lambda: getattr(keras_hub.models, name)(**options), inputs)
    # Norms of eight features, one behind the other, enlarge what is rounded.
    return dataclasses.replace(case, tolerance=5e-4)


CASES = {
    "bert": model("BertBackbone", segments, **PLAIN, max_sequence_length=8),
    "gpt2": model("GPT2Backbone", text, **PLAIN, max_sequence_length=8),
    "llama": model("LlamaBackbone", text, **SHARED),
    "gemma": model("GemmaBackbone", text, **SHARED, head_dim=4),
    "qwen3": model("Qwen3Backbone", text, **SHARED, head_dim=4),
    "mixtral": model("MixtralBackbone", text, **SHARED, num_experts=3),
    "t5": model("T5Backbone", pairs, **PLAIN),
    "whisper": model(
        "WhisperBackbone",
        speech,
        **PLAIN,
        num_mels=6,
        max_encoder_sequence_length=8,
        max_decoder_sequence_length=8,
    ),
    "fnet": model(
        "FNetBackbone",
        lambda: {k: v for k, v in segments().items() if "mask" not in k},
        vocabulary_size=VOCABULARY,
        num_layers=2,
        hidden_dim=8,
        intermediate_dim=12,
        max_sequence_length=TOKENS,
    ),
    "deberta": model("DebertaV3Backbone", text, **PLAIN, max_sequence_length=8),
    "vit": model(
        "ViTBackbone",
        pictures,
        image_shape=(IMAGE, IMAGE, 3),
        patch_size=8,
        num_layers=2,
        num_heads=2,
        hidden_dim=8,
        mlp_dim=12,
    ),
    "encoder": layer(lambda: keras_hub.layers.TransformerEncoder(12, 2), 5, 8),
    "decoder": layer(
        lambda: keras_hub.layers.TransformerDecoder(
            12, 2, normalize_first=True
        ),
        *(5, 8),
    ),
    "alibi": layer(lambda: keras_hub.layers.AlibiBias(), 2, 5, 5),
    "rotary": layer(lambda: keras_hub.layers.RotaryEmbedding(), 5, 8),
    "sine": layer(lambda: keras_hub.layers.SinePositionEncoding(), 5, 8),
}
