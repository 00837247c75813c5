"""``python -m polyax profile``: what a script's time and memory went to, as tables and pictures."""
