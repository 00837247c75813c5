"""Running programs: the backend contract, plugins, devices, arrays, dispatch, and the NumPy reference backend."""
