"""The language: data types, abstract values, primitives and jaxprs. Knows nothing above itself."""

from polyax.ir.pretty import pretty_jaxpr as pretty_jaxpr
