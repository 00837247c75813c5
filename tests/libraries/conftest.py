"""The programs are run in processes of their own, where the libraries are; pytest itself doesn't import them."""

collect_ignore = ["programs"]
