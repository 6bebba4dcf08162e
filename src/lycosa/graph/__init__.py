"""The link graph of a collection: numbers for pages, the feed of commits, who points where, and ranks.

The state is the truth; everything here is derived from it, kept in files of its own under `graph/`, and catches up by
the feed after any crash.
"""
