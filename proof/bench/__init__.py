"""The benchmarks: one module each, with a record `EXPERIMENT` and the function that it runs."""
