"""Images, as ``jax.image`` has them. Re-exports only."""

from polyax.image.resizing import ResizeMethod as ResizeMethod
from polyax.image.resizing import resize as resize
from polyax.image.resizing import scale_and_translate as scale_and_translate
