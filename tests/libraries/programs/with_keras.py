"""Keras 3: models compiled, trained, saved, and called as functions of their weights."""

import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
import numpy as np
from common import blobs, images, program, tokens
from keras import layers


def drawn(seed):
    return keras.initializers.GlorotUniform(seed=seed)


def losses(model, x, y, epochs=3):
    return model.fit(x, y, epochs=epochs, batch_size=16, shuffle=False, verbose=0).history["loss"]


@program()
def mlp():
    x, labels = blobs()
    model = keras.Sequential(
        [
            keras.Input((8,)),
            layers.Dense(32, "relu", kernel_initializer=drawn(1)),
            layers.BatchNormalization(),
            layers.Dense(4, kernel_initializer=drawn(2)),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(1e-2), loss, metrics=["accuracy"])
    history = losses(model, x, labels)
    return {"losses": history, "end": model.evaluate(x, labels, verbose=0), "logits": model.predict(x[:3], verbose=0)}


@program()
def cnn_saved_and_loaded():
    x, labels = images()
    inputs = keras.Input((8, 8, 1))
    z = layers.Conv2D(8, 3, padding="same", kernel_initializer=drawn(3))(inputs)
    z = layers.MaxPooling2D()(layers.ReLU()(layers.BatchNormalization()(z)))
    z = layers.SeparableConv2D(16, 3, depthwise_initializer=drawn(4), pointwise_initializer=drawn(5))(z)
    outputs = layers.Dense(2, kernel_initializer=drawn(6))(layers.GlobalAveragePooling2D()(z))
    model = keras.Model(inputs, outputs)
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    history = losses(model, x, labels)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "cnn.keras")
        model.save(path)
        again = keras.models.load_model(path).predict(x[:2], verbose=0)
    return {"losses": history, "loaded": again, "parameters": model.count_params()}


@program()
def recurrent():
    x = tokens()
    y = np.cos(x[:, :1]).astype(np.float32)
    drawn_twice = {"kernel_initializer": drawn(7), "recurrent_initializer": drawn(8)}
    found = {}
    for cell in (
        layers.LSTM(8, **drawn_twice),
        layers.GRU(8, **drawn_twice),
        layers.Bidirectional(layers.LSTM(4, **drawn_twice)),
    ):
        embedding = layers.Embedding(16, 8, embeddings_initializer=drawn(9), mask_zero=True)
        model = keras.Sequential([keras.Input((12,)), embedding, cell, layers.Dense(1, kernel_initializer=drawn(10))])
        model.compile(keras.optimizers.RMSprop(1e-2), "mse")
        found[type(cell).__name__] = losses(model, x, y)
    return found


@program()
def transformer_as_a_function_of_its_weights():
    x = tokens()
    y = np.sin(x[:, :1]).astype(np.float32)
    inputs = keras.Input((12,))
    e = layers.Embedding(16, 16, embeddings_initializer=drawn(9))(inputs)
    attended = layers.MultiHeadAttention(2, 8, kernel_initializer=drawn(11))(e, e, use_causal_mask=True)
    e = layers.LayerNormalization()(layers.Add()([e, attended]))
    e = layers.Dense(32, "gelu", kernel_initializer=drawn(12))(e)
    model = keras.Model(inputs, layers.Dense(1, kernel_initializer=drawn(13))(layers.GlobalAveragePooling1D()(e)))
    model.compile(keras.optimizers.AdamW(1e-2), "mse")
    history = losses(model, x, y)
    weights = [v.value for v in model.trainable_variables]

    def loss(weights):
        predicted, _ = model.stateless_call(weights, [v.value for v in model.non_trainable_variables], x)
        return jnp.mean((predicted - y) ** 2)

    value, slopes = jax.jit(jax.value_and_grad(loss))(weights)
    return {"losses": history, "loss": value, "squares": sum(jnp.sum(g**2) for g in slopes)}


@program()
def operations():
    x, _ = images()
    logits = np.sin(np.arange(20.0, dtype=np.float32)).reshape(1, 5, 4)
    ops = keras.ops
    return {
        "resized": ops.image.resize(x[:1], (5, 5)),
        "ctc": ops.nn.ctc_loss(np.array([[1, 2]]), logits, np.array([2]), np.array([5])),
        "segments": ops.segment_sum(logits[0], np.array([0, 1, 1, 0, 2]), 3),
        "random": keras.random.normal((3,), seed=1),
        "dropped": jnp.mean(layers.Dropout(0.5, seed=1)(np.ones((50, 50)), training=True) == 0),
    }
