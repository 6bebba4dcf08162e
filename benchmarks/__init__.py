"""Benchmarks: named scenarios, each run by a `make bench-…` target. They print what they measured and judge it."""
