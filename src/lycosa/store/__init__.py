"""Keeping it."""
