"""The version of the program, as written into WARC files and sent in the user agent."""

__version__ = "0.1.0"
