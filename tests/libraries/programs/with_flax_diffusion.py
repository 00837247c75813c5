"""A small diffusion model with flax: blocks of a UNet, trained to predict noise, then sampled."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from common import images, program

STEPS = 20


def _time_embedding(t, size):
    frequencies = jnp.exp(-jnp.log(100.0) * jnp.arange(size // 2) / (size // 2))
    angles = t[:, None] * frequencies[None]
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], -1)


class ResBlock(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x, time):
        h = nn.Conv(self.features, (3, 3))(nn.swish(nn.GroupNorm(num_groups=4)(x)))
        h = h + nn.Dense(self.features)(nn.swish(time))[:, None, None]
        h = nn.Conv(self.features, (3, 3))(nn.swish(nn.GroupNorm(num_groups=4)(h)))
        return h + (x if x.shape[-1] == self.features else nn.Conv(self.features, (1, 1))(x))


class AttentionBlock(nn.Module):
    @nn.compact
    def __call__(self, x):
        b, h, w, c = x.shape
        y = nn.GroupNorm(num_groups=4)(x).reshape(b, h * w, c)
        return x + nn.SelfAttention(num_heads=2)(y).reshape(x.shape)


class UNet(nn.Module):
    @nn.compact
    def __call__(self, x, t):
        time = nn.Dense(32)(nn.swish(nn.Dense(32)(_time_embedding(t.astype(jnp.float32), 16))))
        x = nn.Conv(8, (3, 3))(x)
        down1 = ResBlock(8)(x, time)
        down2 = ResBlock(16)(nn.Conv(16, (3, 3), strides=(2, 2))(down1), time)
        middle = AttentionBlock()(ResBlock(16)(down2, time))
        b, h, w, c = middle.shape
        up = nn.Conv(8, (3, 3))(jax.image.resize(middle, (b, 2 * h, 2 * w, c), "nearest"))
        up = ResBlock(8)(jnp.concatenate([up, down1], -1), time)
        return nn.Conv(1, (3, 3), kernel_init=nn.initializers.zeros)(nn.swish(nn.GroupNorm(num_groups=4)(up)))


@program(rtol=2e-3, atol=2e-3)
def ddpm_trained_and_sampled():
    x0, _ = images()
    betas = jnp.linspace(1e-3, 0.2, STEPS)
    alphas = 1 - betas
    kept = jnp.cumprod(alphas)
    model = UNet()
    params = model.init(jax.random.key(0), x0, jnp.zeros(x0.shape[0], jnp.int32))
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1, momentum=0.9))

    def loss_of(params, key):
        k1, k2 = jax.random.split(key)
        t = jax.random.randint(k1, (x0.shape[0],), 0, STEPS)
        noise = jax.random.normal(k2, x0.shape)
        a = kept[t][:, None, None, None]
        predicted = model.apply(params, jnp.sqrt(a) * x0 + jnp.sqrt(1 - a) * noise, t)
        return jnp.mean((predicted - noise) ** 2)

    @jax.jit
    def train(params, keys):
        def step(carry, key):
            params, opt = carry
            loss, grads = jax.value_and_grad(loss_of)(params, key)
            updates, opt = optimizer.update(grads, opt, params)
            return (optax.apply_updates(params, updates), opt), loss

        (params, _), losses = jax.lax.scan(step, (params, optimizer.init(params)), keys)
        return params, losses

    @jax.jit
    def sample(params, key):
        def back(i, carry):
            x, key = carry
            t = STEPS - 1 - i
            key, k = jax.random.split(key)
            noise = model.apply(params, x, jnp.full(x.shape[0], t))
            mean = (x - betas[t] / jnp.sqrt(1 - kept[t]) * noise) / jnp.sqrt(alphas[t])
            return mean + jnp.where(t > 0, jnp.sqrt(betas[t]), 0.0) * jax.random.normal(k, x.shape), key

        first = jax.random.normal(key, (2, 8, 8, 1))
        return jax.lax.fori_loop(0, STEPS, back, (first, key))[0]

    params, losses = train(params, jax.random.split(jax.random.key(1), 30))
    return {
        "losses": losses,
        "samples": sample(params, jax.random.key(2))[0, :, :, 0],
        "params": optax.global_norm(params),
    }
