"""``polyax.test_util``: derivatives against finite differences. Re-exports only."""

from polyax.testing.gradients import check_grads as check_grads
from polyax.testing.gradients import check_jvp as check_jvp
from polyax.testing.gradients import check_vjp as check_vjp
