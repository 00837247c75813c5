"""How arrays lie on devices: meshes, specs and shardings. Knows no device: they are objects with an ``id``, a
``platform`` and a ``process_index``."""
