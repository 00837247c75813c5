"""``polyax.experimental.compilation_cache``: where compiled code is kept between processes."""
