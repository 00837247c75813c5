"""The whole path on real data: trains the network of ``digits.py`` without and with ``jit``, and draws what it learned.

    python examples/demo.py [--mnist FOLDER] [--epochs N] [--out FOLDER]

POLYAX_PLATFORMS chooses the device. FOLDER holds the four idx files of MNIST, gzipped or not.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import struct
import time
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib
import numpy as np
from tqdm import tqdm

import digits
import polyax as jax

matplotlib.use("Agg")
import matplotlib.pyplot as plt

BATCH = 128


@dataclass
class Data:
    train: np.ndarray
    test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray

    def batches(self):
        for i in range(0, len(self.train), BATCH):
            yield self.train[i : i + BATCH], jax.nn.one_hot(self.y_train[i : i + BATCH], 10)


@dataclass
class Run:
    """What one training run leaves: a number per epoch in each list."""

    name: str
    params: object = None
    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def seconds_per_epoch(self) -> float:
        """The median, so that the epoch that compiles doesn't count."""
        return statistics.median(self.seconds)


def read_idx(folder: Path, stem: str) -> np.ndarray:
    """An array in MNIST's idx format: two zero bytes, dtype, rank, big-endian sizes, the elements."""
    path = next((p for p in sorted(folder.glob(stem + "*")) if p.is_file()), None)
    if path is None:
        raise SystemExit(f"{folder} has no file {stem}*; it should hold MNIST's four idx files")
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    zero, dtype, rank = struct.unpack(">HBB", raw[:4])
    if zero or dtype != 8:
        raise SystemExit(f"{path} is not an idx file of bytes")
    shape = struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)


def load(mnist: Path | None) -> Data:
    if mnist is None:
        images, labels = digits.load()
        return Data(*images, *labels)
    images = [read_idx(mnist, f"{part}-images") for part in ("train", "t10k")]
    labels = [read_idx(mnist, f"{part}-labels") for part in ("train", "t10k")]
    return Data(
        *((x.reshape(len(x), -1) / 255).astype(np.float32) for x in images),
        *(y.astype(np.int32) for y in labels),
    )


def show_devices() -> None:
    print(f"{'device':16} {'platform':12} {'id':>3}  kind")
    for d in jax.devices():
        print(f"{d!s:16} {d.platform:12} {d.id:3}  {d.device_kind}")
    print()


def train(run: Run, step, data: Data, epochs: int) -> Run:
    params = digits.init([data.train.shape[1], 512, 512, 10], jax.random.PRNGKey(0))
    with tqdm(total=epochs * -(-len(data.train) // BATCH), desc=run.name, unit="batch") as bar:
        for epoch in range(epochs):
            start, losses = time.perf_counter(), []
            for images, targets in data.batches():
                params, value = step(params, images, targets)
                losses.append(value)
                bar.update()
            jax.block_until_ready(params)
            run.seconds.append(time.perf_counter() - start)
            run.losses.append(float(np.mean([float(v) for v in losses])))
            run.accuracies.append(float(digits.accuracy(params, data.test, data.y_test)))
            bar.write(
                f"{run.name:12} epoch {epoch + 1:2}: loss {run.losses[-1]:.4f}, "
                f"test accuracy {run.accuracies[-1]:6.2%}, {run.seconds[-1]:.3f} s"
            )
    run.params = params
    return run


def draw_curves(axes, runs: list[Run]) -> None:
    for run, style in zip(runs, ("-", "--")):
        epochs = range(1, len(run.losses) + 1)
        axes[0].plot(epochs, run.losses, style, label=f"{run.name}: {run.seconds_per_epoch:.3f} s per epoch")
        axes[1].plot(epochs, [100 * a for a in run.accuracies], style, label=f"{run.name}: {run.accuracies[-1]:.1%}")
    axes[0].set(title="training loss", xlabel="epoch", yscale="log")
    axes[1].set(title="test accuracy, %", xlabel="epoch")
    for ax in axes:
        ax.legend()
        ax.grid(alpha=0.3)
        ax.xaxis.get_major_locator().set_params(integer=True)


def draw_digits(axes, run: Run, data: Data) -> None:
    """Test images with what the network takes them for; its mistakes come first, in red."""
    guess = np.asarray(digits.batched_predict(run.params, data.test)).argmax(axis=1)
    chosen = np.argsort(guess == data.y_test, kind="stable")[: len(axes)]
    side = round(data.test.shape[1] ** 0.5)
    for ax, i in zip(axes, chosen):
        right = guess[i] == data.y_test[i]
        ax.imshow(data.test[i].reshape(side, side), cmap="gray_r")
        ax.set_title(f"{guess[i]}" if right else f"{guess[i]}, not {data.y_test[i]}", color="black" if right else "red")
        ax.axis("off")


def draw(path: Path, runs: list[Run], data: Data) -> None:
    figure = plt.figure(figsize=(12, 8), layout="constrained")
    top, bottom = figure.subfigures(2, 1, height_ratios=(3, 2))
    top.suptitle(f"A 512-512-10 network on handwritten digits, polyax on {jax.devices()[0].platform}")
    draw_curves(top.subplots(1, 2), runs)
    draw_digits(bottom.subplots(2, 8).ravel(), runs[-1], data)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mnist", type=Path, help="folder with MNIST's idx files")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder of the picture")
    options = parser.parse_args()
    show_devices()
    data = load(options.mnist)
    steps = {"without jit": digits.update, "with jit": jax.jit(digits.update)}
    runs = [train(Run(name), step, data, options.epochs) for name, step in steps.items()]
    eager, compiled = (run.seconds_per_epoch for run in runs)
    print(f"\nseconds per epoch: {eager:.3f} without jit, {compiled:.3f} with jit: {eager / compiled:.1f} times faster")
    print(f"test accuracy: {runs[0].accuracies[-1]:.2%} without jit, {runs[1].accuracies[-1]:.2%} with jit")
    path = options.out / f"digits-{jax.devices()[0].platform}.png"
    draw(path, runs, data)
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
