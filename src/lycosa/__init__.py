"""Lycosa: a polite, fast web crawler that loses nothing, and the simulated web it is proved on."""

__version__ = "0.1.0"
