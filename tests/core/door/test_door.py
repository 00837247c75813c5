"""``polyax.as_jax``: what ``import jax`` means then, what is refused, scripts, stubs. Each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from polyax.door import stubs
from support.process import finished

OPENED = """
import importlib.metadata
import pickle
import sys
import polyax
assert polyax.__version__ == importlib.metadata.version("polyax") != "0.10.2"  # its own, until the door opens
import polyax.as_jax
import jax, jax.numpy as jnp

assert jax is polyax and jnp is polyax.numpy and sys.modules["jax.numpy"] is polyax.numpy
assert polyax.numpy.__spec__.name == "polyax.numpy" == polyax.numpy.__name__
from jax.scipy.linalg import cho_solve
from jax.experimental.sparse.transform import SparseTracer, sparsify
from jax.experimental.sparse.util import SparseEfficiencyWarning
import jax.experimental.shard_map, polyax.experimental.shard_map
assert jax.experimental.shard_map is polyax.experimental.shard_map
assert jax.__version__ == jax.version.__version__ == "0.10.2" and jax.__version_info__ == (0, 10, 2)

from jax._src import core, source_info_util, traceback_util
(eqn,) = jax.make_jaxpr(lambda x: x + 1)(1.0).eqns
file, function, line, column = source_info_util.user_frame(eqn.source_info.traceback)
assert source_info_util.summarize(eqn.source_info) == f"<string>:{line}:34 (<lambda>)" and column == 34
assert source_info_util.summarize(eqn.replace(source_info=None).source_info) == "unknown"
import jax._src.random
assert core.ShapedArray is polyax.core.ShapedArray and core.trace_state_clean() and jax._src.random is polyax.random
assert not jax.jit(lambda x: x if core.trace_state_clean() else x + 1)(1) == 1
from jax._src.state.types import RefEffect
effects = jax.make_jaxpr(lambda r: r[...])(jax.new_ref(jax.numpy.zeros(3))).effects
assert effects and all(isinstance(e, RefEffect) for e in effects)
assert jax.device_put(1, jax.devices()[0])._committed and not jax.numpy.ones(2)._committed
assert jax.core.get_opaque_trace_state and not hasattr(jax.core, "take_current_trace")  # JAX 0.10 has removed it there
assert importlib.metadata.version("jax") == importlib.metadata.version("jaxlib") == "0.10.2"  # to those who ask for it
from jax._src.nn.initializers import _complex_truncated_normal, _complex_uniform
key = jax.random.key(0)
from jax.extend.source_info_util import current, summarize
assert abs(_complex_truncated_normal(key, 0.5, (99,), "complex64")).max() <= 0.5
assert 1.3 < abs(_complex_uniform(key, (99,), "complex64")).max() <= 2**0.5
from jaxlib import version, xla_client
from jaxlib._jax import PjitFunction
from jax._src.lib import xla_client as same
from jax._src.api_util import infer_argnums_and_argnames
from jax._src import xla_bridge
assert "cuda" not in xla_bridge.get_backend().platform_version and xla_bridge.get_backend() is jax.devices()[0].client
whose = lambda x: type(x).__module__.split(".")[0]
assert whose(jnp.ones(2)) == "jax" and pickle.loads(pickle.dumps(jax.Array)) is jax.Array
for transform in (jax.jit, jax.vmap, jax.grad):
    transform(lambda x: x if whose(x) == "jax" else 1 / 0)(jnp.ones(2) if transform is jax.vmap else 1.0)
assert isinstance(jax.jit(abs), PjitFunction) and same.Device is xla_client.Device is jax.Device
from jax._src.interpreters import partial_eval
doubled = jax.make_jaxpr(lambda x: x * 2)(1.0)
assert core.jaxpr_as_fun(partial_eval.close_jaxpr(doubled.jaxpr))(3.0)[0] == 6.0
import inspect
from jax._src.literals import TypedComplex, TypedFloat, TypedInt
for made, base in ((TypedInt(3, jnp.dtype("int32")), int), (TypedFloat(2.5, jnp.dtype("float32")), float)):
    again = pickle.loads(pickle.dumps(made))
    assert isinstance(again, base) and again == made and again.dtype == made.dtype and again.aval.weak_type
assert repr(TypedComplex(1j, jnp.dtype("complex64"))) == "TypedComplex(1j, dtype=complex64)"
from jax._src.public_test_util import check_close
check_close({"a": jnp.ones(3), "b": 2}, {"a": jnp.ones(3) + 1e-6, "b": 2})
check_close(jnp.ones(2), jnp.ones(2) + 1e-3, atol={"float32": 1e-3, "float64": 0}, rtol={"float32": 1e-3})
for wrong in ((jnp.ones(3), jnp.ones(3) + 1e-3), (jnp.ones(3), jnp.ones(1)), (1, 2)):
    try:
        check_close(*wrong)
    except AssertionError:
        continue
    raise SystemExit(f"{wrong} are told to be close")
sig = inspect.signature(lambda x, *, y=0, z=1: x)
assert infer_argnums_and_argnames(sig, 0, None) == ((0,), ("x",))
assert infer_argnums_and_argnames(sig, None, ["x", "y"]) == ((0,), ("x", "y"))
assert infer_argnums_and_argnames(sig, None, None) == ((), ())
from jax._src import config
assert config.disable_bwd_checks.value is False and config.enable_checks is polyax.enable_checks
with config.disable_bwd_checks(True):
    assert config.disable_bwd_checks.value is True
from jax._src.tree_util import _registry
children, aux = _registry[dict].to_iter({"a": 1})
assert _registry[dict].from_iter(aux, children) == {"a": 1} and len(_registry) == len([*_registry])
from jax._src.lax import control_flow, parallel, slicing
from jax._src.numpy.util import check_arraylike, ensure_arraylike, promote_args_inexact, promote_dtypes
from jax._src.numpy.util import promote_dtypes_complex
assert promote_dtypes_complex(1)[0].dtype == "complex64" and promote_dtypes(1, 2.0)[0].weak_type
assert ensure_arraylike("f", 2).shape == ()
from jax._src.export.shape_poly import symbolic_shape
assert control_flow.scan_p is polyax.lax.scan_p and parallel.psum is polyax.lax.psum and slicing.gather_p
from jax.lib import __version__
assert version.__version__ == __version__ == "0.10.2"

try:
    jax.jit(lambda x: 1 if x > 0 else 2)(1)
except jax.errors.TracerBoolConversionError as e:
    assert "Use jax.numpy.where or jax.lax.cond" in str(e), e

import numpy as np  # today's bits of JAX
np.testing.assert_allclose(jax.random.normal(jax.random.key(0), (3,)), [1.6226422, 2.0252647, -0.43359444], rtol=1e-6)
polyax.as_jax.install()
assert len([f for f in sys.meta_path if type(f).__name__ == "AliasFinder"]) == 1

assert polyax.as_jax.missing() == ("jax.core.take_current_trace",), polyax.as_jax.missing()
for module, text in {
    "jax": "jax.no_such",
    "jax.lax": "jax.lax.no_such",
    "jax.dlpack": "jax.dlpack.no_such",  # loaded late
    "jax._src.core": "jax._src.core.no_such",
}.items():
    __import__(module)
    for lookup in ("getattr(sys.modules[module], 'no_such')", f"exec('from {module} import no_such')"):
        try:
            eval(lookup)
        except (AttributeError, ImportError) as e:
            told = str(e)
        if "exec" not in lookup or module.count("_src") == 0 and hasattr(sys.modules[module], "__path__"):
            assert text in told and "docs/libraries.md" in told and "0.10.2" in told, (lookup, told)
assert not hasattr(jax.numpy, "no_such") and "jax.numpy.no_such" in polyax.as_jax.missing()
for name, text in {"psend": "because devices meet in collectives", "no_such": "It follows JAX 0.10.2"}.items():
    try:
        getattr(jax.lax, name)
    except AttributeError as e:
        assert text in str(e) and "docs/libraries.md" in str(e), e
try:
    import jax.no.such
except ModuleNotFoundError as e:
    assert e.name == "jax.no" and "docs/libraries.md" in str(e)
"""
OTHER_FIRST = "import jax\nimport polyax.as_jax\n"
CLOSED = """
import polyax
assert not hasattr(polyax, "_src") and not hasattr(polyax, "__version_info__"), "only behind the door"
try:
    import jax
except ModuleNotFoundError:
    pass
assert not polyax.config.threefry_partitionable
"""


def run(*arguments: str, path: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "POLYAX_PLATFORMS": "reference", **variables}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    command = [sys.executable, *arguments]
    return finished(command, 120, environment, path)


def test_jax_is_polyax_once_the_door_is_open() -> None:
    done = run("-c", OPENED)
    assert done.returncode == 0, done.stderr


def test_the_door_is_closed_otherwise() -> None:
    done = run("-c", CLOSED)
    assert done.returncode == 0, done.stderr


PRIMITIVE = """
import polyax.as_jax
from functools import partial
import jax
from jax.extend.core import Primitive
from jax.interpreters import mlir, xla

p = Primitive("multiply_add")
p.def_impl(partial(xla.apply_primitive, p))
p.def_abstract_eval(lambda x, y, z: x)
mlir.register_lowering(p, mlir.lower_fun(lambda x, y, z: x * y + z, multiple_results=False))
assert p.bind(2.0, 3.0, 4.0) == jax.jit(p.bind)(2.0, 3.0, 4.0) == xla.apply_primitive(p, 2.0, 3.0, 4.0) == 10
q = Primitive("unknown")
q.def_impl(partial(xla.apply_primitive, q))
q.def_abstract_eval(lambda x: x)
try:
    q.bind(1.0)
except NotImplementedError as e:
    assert "'unknown'" in str(e)
else:
    raise AssertionError("it ran without a lowering")
from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
assert callable(splash_attention_mask.CausalMask)
try:
    splash_attention_kernel.make_splash_mha(mask=None)
except NotImplementedError as e:
    assert "jax.nn.dot_product_attention" in str(e)
else:
    raise AssertionError("it made a kernel for a TPU")
"""


def test_primitives_of_others_run_by_their_lowerings() -> None:
    done = run("-c", PRIMITIVE)
    assert done.returncode == 0, done.stderr


def test_the_setting_of_random_bits_is_obeyed() -> None:
    said = "import polyax.as_jax, polyax; print(polyax.config.threefry_partitionable)"
    assert run("-c", said, POLYAX_THREEFRY_PARTITIONABLE="0").stdout == "False\n"
    assert run("-c", said).stdout == "True\n"


def test_it_is_refused_when_jax_itself_is_imported(tmp_path: Path) -> None:
    (tmp_path / "jax.py").write_text("__version__ = '0.9.0'\n")
    done = run("-c", OTHER_FIRST, path=tmp_path)
    assert done.returncode and "jax 0.9.0 is imported already, from" in done.stderr
    assert "Import polyax.as_jax before anything that imports jax" in done.stderr
    done = run("-c", "import polyax.as_jax, jax, polyax; assert jax is polyax", path=tmp_path)
    assert done.returncode == 0, done.stderr  # installed, but not imported


def test_scripts_and_modules_run_with_their_arguments(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("name = __name__\n")
    script = tmp_path / "script.py"
    script.write_text("import sys, jax, beside\nprint(__name__, sys.argv[1:], jax.__name__)\nsys.exit(3)\n")
    done = run("-m", "polyax.as_jax", str(script), "-m", "b")
    assert (done.returncode, done.stdout) == (3, "__main__ ['-m', 'b'] polyax\n"), done.stderr
    (tmp_path / "module.py").write_text("import sys, jax\nprint(__name__, sys.argv[1:])\n")
    assert run("-m", "polyax.as_jax", "-m", "module", "x", path=tmp_path).stdout == "__main__ ['x']\n"
    (tmp_path / "place.py").write_text("print(__file__)\n")
    assert run("-m", "polyax.as_jax", "place.py", path=tmp_path).stdout == f"{tmp_path / 'place.py'}\n"
    done = run("-m", "polyax.as_jax", "nowhere.py")
    assert done.returncode == 2 and "there is no file 'nowhere.py'" in done.stderr
    assert "usage" in run("-m", "polyax.as_jax").stderr


def test_tests_run_with_the_door_open(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import jax\n\n\ndef test_it():\n    assert jax.__name__ == 'polyax'\n")
    done = run("-m", "pytest", "-q", "-p", "polyax.as_jax", "-p", "no:cacheprovider", path=tmp_path)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout


def test_stubs_satisfy_requirements_and_open_the_door(tmp_path: Path) -> None:
    made = run("-m", "polyax.as_jax", "stub", "--target", str(tmp_path))
    assert "made jax 0.10.2+polyax, jaxlib 0.10.2+polyax" in made.stdout, made.stderr
    using = (
        "import jax.numpy, jaxlib, polyax, importlib.metadata as m\n"
        "assert jax is polyax and jaxlib.__version__ == '0.10.2'\n"
        "print(m.version('jax'), m.version('jaxlib'), m.requires('jax'))"
    )
    done = run("-c", using, path=tmp_path)
    assert done.stdout == "0.10.2+polyax 0.10.2+polyax ['polyax']\n", done.stderr
    again = run("-m", "polyax.as_jax", "stub", "--target", str(tmp_path))
    assert again.returncode == 0 and len(list(tmp_path.glob("*.dist-info"))) == 2
    removed = run("-m", "polyax.as_jax", "stub", "--remove", "--target", str(tmp_path))
    assert removed.stdout.startswith("removed jax 0.10.2+polyax, jaxlib 0.10.2+polyax")
    assert not list(tmp_path.iterdir())
    assert "there are no stubs" in run("-m", "polyax.as_jax", "stub", "--remove", "--target", str(tmp_path)).stdout


def test_stubs_never_replace_jax_itself(tmp_path: Path) -> None:
    info = tmp_path / "jax-0.10.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: jax\nVersion: 0.10.2\n")
    with pytest.raises(stubs.StubError, match=r"jax 0\.10\.2 is installed in .*pip uninstall jax jaxlib"):
        stubs.add(tmp_path)
    assert stubs.remove(tmp_path) == [] and info.exists()


ALL_PLACES = """
import importlib
import polyax.as_jax
from polyax.door.places import PLACES
for alias in PLACES:
    importlib.import_module(alias)
    for place in PLACES[alias]:
        importlib.import_module(place)
"""


def test_all_places_of_the_table_exist() -> None:
    done = run("-c", ALL_PLACES)
    assert done.returncode == 0, done.stderr
