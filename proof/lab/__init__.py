"""The experiments of the papers: one module each, with a record `EXPERIMENT` and the function that it runs."""
