"""einops: axes by name."""

import einops
import jax
import jax.numpy as jnp
from common import images, program


@program()
def operations():
    x = jnp.arange(48.0).reshape(2, 4, 6)

    @jax.jit
    def f(x):
        y = einops.rearrange(x, "b (h p) w -> (b h) p w", p=2)
        z = einops.reduce(y, "n p w -> n w", "mean")
        return einops.einsum(einops.repeat(z, "n w -> n w r", r=3), x, "n w r, b h w -> b r h")

    packed, shapes = einops.pack([x, x[:, 0]], "b * w")
    parts = einops.unpack(packed, shapes, "b * w")
    return {
        "f": f(x),
        "grad": jax.grad(lambda x: (f(x) ** 2).mean())(x),
        "packed": packed.sum(1),
        "parts": parts[1],
        "shape": list(einops.parse_shape(x, "a b c").values()),
    }


@program()
def patches_of_images():
    pictures, _ = images()

    @jax.jit
    def attention(x):
        patches = einops.rearrange(x, "b (h p) (w q) c -> b (h w) (p q c)", p=4, q=4)
        scores = jax.nn.softmax(einops.einsum(patches, patches, "b i d, b j d -> b i j") / 4)
        mixed = einops.einsum(scores, patches, "b i j, b j d -> b i d")
        return einops.rearrange(mixed, "b (h w) (p q c) -> b (h p) (w q) c", h=2, p=4, q=4)

    return {"mixed": attention(pictures)[:3], "grad": jax.grad(lambda x: (attention(x) ** 2).sum())(pictures)[0]}
