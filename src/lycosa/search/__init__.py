"""The search index of a collection (H3): what words its pages have, who calls them what, and how to ask.

The state is the truth; the index is derived from it, kept under `index/`, and catches up by the feed of commits after
any crash. This room knows words, queries and scores; where pages come from is the engine's business.
"""
