"""What experiments and benchmarks stand on: commands, servers, other crawlers, real sites, and crawls
of the in-memory simulated web.
"""
