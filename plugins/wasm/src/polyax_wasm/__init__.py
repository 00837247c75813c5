"""The WebAssembly backend: kernels become modules of one function, which wasmtime compiles and runs."""
