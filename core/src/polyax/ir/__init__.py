"""The language: data types, abstract values, primitives and jaxprs. Knows nothing above itself."""
